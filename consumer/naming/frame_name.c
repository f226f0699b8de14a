/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/frame_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "consumer/jit/perf_map_files.h"
#include "consumer/runtimes/code_names.h"
#include "consumer/unwind/store/unwind_end.h"
#include "consumer/unwind/store/unwind_file.h"
#include "shared/tools/macro.h"

const char *frame_name_of_quality(enum quality quality)
{
	static const char *const names[] = { "complete", "truncated", "broken" };

	return names[quality];
}

static void name_kernel(struct symbols *symbols, const struct frame *f, bool caller,
			struct named_frame *ret)
{
	struct symbol_name name = {};
	const char *module = "";

	/* A return address points after the call, which may be the function's last instruction. */
	symbols_kernel(symbols, f->offset - (caller ? 1 : 0), &name, &module);
	*ret = (struct named_frame){
		.fn = name.fn,
		.reason = name.reason,
		.module = module && module[0] ? module : "kernel",
		.kind = "kernel",
		.offset = name.offset_in_fn + (caller ? 1 : 0),
		.has_offset = name.fn != NULL,
	};
}

static void name_jit(struct symbols *symbols, const struct stack *stack, const struct frame *f,
		     bool caller, struct named_frame *ret)
{
	struct process_key process = { .tgid = stack->tgid, .start_ns = stack->start_ns };
	struct symbol_name name = {};

	symbols_jit(symbols, &process, stack_sample_offset(f) - (caller ? 1 : 0), &name);
	*ret = (struct named_frame){
		.fn = name.fn,
		.reason = name.reason,
		.module = f->module->path,
		.kind = "jit",
		.offset = stack_sample_offset(f),
		.has_offset = true,
	};
}

/*
 * Names a frame outside all mappings that were read: a runtime may have mapped more code, and its
 * process may have ended before the consumer read the mappings again. The process's perf map names
 * addresses without a mapping.
 */
static void name_unknown(struct symbols *symbols, const struct stack *stack, const struct frame *f,
			 bool caller, struct named_frame *ret)
{
	struct process_key process = { .tgid = stack->tgid, .start_ns = stack->start_ns };

	*ret = (struct named_frame){ 0 };
	if (perf_map_files_knows(symbols_perf_map_files(symbols), &process))
		name_jit(symbols, stack, f, caller, ret);
	if (ret->fn)
		ret->module = "[anon]";
	else
		*ret = (struct named_frame){ .reason = "no_mapping", .kind = "user" };
}

static void name_user(struct symbols *symbols, const struct frame *f, bool caller,
		      struct named_frame *ret)
{
	struct symbol_name name = {};
	const struct module *file;

	symbols_user(symbols, f->module, stack_sample_offset(f), caller, &name);
	file = f->module->resolved ? f->module->resolved : f->module;
	*ret = (struct named_frame){
		.fn = name.fn,
		.raw = name.raw,
		.reason = name.reason,
		.after = name.after,
		.module = file->path[0] ? file->path : NULL,
		.kind = "user",
		.rowless = symbols_rowless(f->module),
		.interpreter = f->module->interprets,
		.offset = stack_sample_offset(f),
		.start = stack_sample_offset(f) - name.offset_in_fn,
		.has_offset = true,
	};
	ret->build_id_bytes = symbols_build_id(symbols, f->module, ret->build_id);
}

/* Names a frame of a language runtime, by the names that the kernel side has copied. */
static void name_runtime(struct symbols *symbols, const struct frame *f, struct named_frame *ret)
{
	struct code_place place = { 0 };
	bool known = code_names_find(symbols_code_names(symbols), f->offset, &place);

	*ret = (struct named_frame){
		.fn = place.fn,
		.reason = known ? NULL : "not_copied",
		.module = place.file,
		.kind = "runtime",
		.line = place.line,
	};
}

const struct named_frame *frame_name_root(const struct named_frame *frames, size_t n)
{
	while (n && frame_name_is_runtime(&frames[n - 1]))
		n--;
	return n ? &frames[n - 1] : NULL;
}

int frame_name_say_line(const char *file, int32_t line, char *text, size_t space)
{
	const char *slash = file ? strrchr(file, '/') : NULL;

	if (!line || !file)
		return 0;
	return snprintf(text, space, " at %.60s:%" PRId32, slash ? slash + 1 : file, line);
}

bool frame_name_is_runtime(const struct named_frame *f)
{
	return f->kind && !strcmp(f->kind, "runtime");
}

bool frame_name_is_caller(const struct stack *stack, size_t i)
{
	size_t n = (size_t)stack->kernel_frames + stack->user_frames;

	if (i < stack->kernel_frames)
		return i > 0;
	if (i == stack->kernel_frames || stack_sample_interrupted(&stack->frames[i]))
		return false;
	return i + 1 >= n || !stack_sample_interrupted(&stack->frames[i + 1]);
}

void frame_name_frame(struct symbols *symbols, const struct stack *stack, size_t i,
		      struct named_frame *ret_frame)
{
	const struct frame *f = &stack->frames[i];
	bool user = i >= stack->kernel_frames, caller = frame_name_is_caller(stack, i);

	if (!user)
		name_kernel(symbols, f, caller, ret_frame);
	else if (f->module == &stack_sample_runtime)
		name_runtime(symbols, f, ret_frame);
	else if (f->module == &stack_sample_unknown)
		name_unknown(symbols, stack, f, caller, ret_frame);
	else if (f->module->anonymous)
		name_jit(symbols, stack, f, caller, ret_frame);
	else
		name_user(symbols, f, caller, ret_frame);
	ret_frame->exact = i > stack->kernel_frames && !caller && !frame_name_is_runtime(ret_frame);
}

size_t frame_name_gap(const struct stack *stack, const struct named_frame *frames, size_t n)
{
	for (size_t i = stack->kernel_frames + 1u; i < n; i++)
		if (frames[i].unproved)
			return i;
	return 0;
}

const char *frame_name_rowless(const struct stack *stack, const struct named_frame *root)
{
	const char *rowless = root ? root->rowless : NULL;

	return rowless && !*rowless && !(stack->flags & SAMPLE_UNWOUND) ? unwind_file_why(-EAGAIN)
									: rowless;
}

/*
 * Returns why the walk could not continue by rows in frame `f`, where it needed the frame pointer:
 * the reason for the missing rows, else `otherwise`.
 */
static const char *say_rowless(const struct stack *stack, const struct named_frame *f,
			       const char *otherwise)
{
	const char *rowless = frame_name_rowless(stack, f);
	const char *help = rowless ? unwind_file_help(rowless) : NULL;

	return help ? help : otherwise;
}

/*
 * Returns whether the stack ends in an entry point. A lone frame proves nothing: it is where the
 * thread was, for example in the function that makes another thread.
 */
static bool is_known_end(const struct stack *stack, const struct named_frame *root)
{
	return stack->user_frames > 1 && root && root->entry;
}

/* Handwritten code may mark its caller as undefined between two instructions. */
enum unwind_end frame_name_end(const struct stack *stack, const struct named_frame *frames,
			       size_t n)
{
	const struct named_frame *leaf = frame_name_root(frames, n);

	if (stack->stop_reason != UNWIND_END_COMPLETE || stack->user_frames > 1 ||
	    (leaf && leaf->entry))
		return stack->stop_reason;
	return UNWIND_END_LEAF;
}

/*
 * Judges a stack that the kernel side walked by unwind rows. UNWIND_END_NO_CALLER alone proves
 * nothing: a complete stack ends that way too, because its outermost function has no caller.
 */
static enum quality unwound_quality(const struct stack *stack, const struct named_frame *frames,
				    size_t n, const char **ret_reason)
{
	const struct named_frame *root = frame_name_root(frames, n);
	enum unwind_end end = frame_name_end(stack, frames, n);

	if (stack->kernel_frames >= STACK_FRAMES) {
		*ret_reason = "deeper than 127 frames";
		return QUALITY_TRUNCATED;
	}
	if (end == UNWIND_END_COMPLETE ||
	    ((end == UNWIND_END_NO_CALLER || end == UNWIND_END_NO_POINTERS) &&
	     is_known_end(stack, root))) {
		if (!frame_name_gap(stack, frames, n))
			return QUALITY_COMPLETE;
		end = UNWIND_END_UNPROVED;
	}
	*ret_reason = end == UNWIND_END_DEPTH ? "deeper than 127 frames" : unwind_end_help(end);
	if (end == UNWIND_END_NO_POINTERS)
		*ret_reason = say_rowless(stack, root, *ret_reason);
	return end == UNWIND_END_DEPTH ? QUALITY_TRUNCATED : QUALITY_BROKEN;
}

enum quality frame_name_native_quality(const struct stack *stack, const struct named_frame *frames,
				       size_t n, const char **ret_reason)
{
	const struct named_frame *root = frame_name_root(frames, n);

	*ret_reason = NULL;
	if (stack->flags & SAMPLE_KTHREAD)
		return QUALITY_COMPLETE;
	if (!stack->user_frames) {
		*ret_reason = stack->user_error ? "the user stack could not be read"
						: "the tick found no user frame";
		return QUALITY_BROKEN;
	}
	if (stack->flags & SAMPLE_UNWOUND)
		return unwound_quality(stack, frames, n, ret_reason);
	if (stack->user_frames >= STACK_FRAMES || stack->kernel_frames >= STACK_FRAMES) {
		*ret_reason = "deeper than 127 frames";
		return QUALITY_TRUNCATED;
	}
	if (stack->flags & STACK_SAMPLE_CUT) {
		*ret_reason = say_rowless(stack, root,
					  "the chain of frame pointers led outside every mapping: "
					  "built without frame pointers");
		return QUALITY_BROKEN;
	}
	if (is_known_end(stack, root)) {
		if (!frame_name_gap(stack, frames, n))
			return QUALITY_COMPLETE;
		*ret_reason = unwind_end_help(UNWIND_END_UNPROVED);
		return QUALITY_BROKEN;
	}
	*ret_reason = say_rowless(stack, root,
				  "the chain of frame pointers ended before an entry point: "
				  "built without frame pointers");
	return QUALITY_BROKEN;
}

/* A whole native stack is not the whole stack while functions that are interpreted are missing. */
enum quality frame_name_quality(const struct stack *stack, const struct named_frame *frames,
				size_t n, const char **ret_reason)
{
	enum quality native = frame_name_native_quality(stack, frames, n, ret_reason);

	if (native != QUALITY_COMPLETE || !(stack->flags & SAMPLE_RUNTIME))
		return native;
	if (stack->runtime_end == RUNTIME_END_DEPTH) {
		*ret_reason = "deeper than 128 functions that are interpreted";
		return QUALITY_TRUNCATED;
	}
	if (stack->runtime_end != RUNTIME_END_TORN)
		return native;
	*ret_reason = "functions that are interpreted are missing: a frame was being changed, or "
		      "its memory was not resident";
	return QUALITY_BROKEN;
}

bool frame_name_is_library(const char *module)
{
	static const char *const names[] = { "libc.",  "libc-", "libpthread", "libstdc++",
					     "libc++", "ld-",	"ld.",	      "[vdso]" };
	const char *slash = module ? strrchr(module, '/') : NULL;
	const char *name = slash ? slash + 1 : module;

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}
