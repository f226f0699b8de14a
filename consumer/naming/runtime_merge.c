/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/runtime_merge.h"

#include <stdbool.h>
#include <string.h>

#include "consumer/naming/frame_name.h"
#include "shared/tools/macro.h"

/* The functions of evaluation loops. A compiler splits cold parts off, with a suffix. */
static const char *const loops[] = { "_PyEval_EvalFrameDefault" };

static bool is_loop(const char *fn)
{
	for (size_t i = 0; fn && i < ARRAY_SIZE(loops); i++) {
		size_t bytes = strlen(loops[i]);

		if (!strncmp(fn, loops[i], bytes) && (!fn[bytes] || fn[bytes] == '.'))
			return true;
	}
	return false;
}

/* The frames of the runtime that have no place yet. */
struct runs {
	const struct frame *at, *end;
};

/* Moves the frames of one run to `to`; returns their number. */
static size_t take_run(struct runs *runs, struct frame *to)
{
	size_t count = 0;
	bool ends = false;

	while (runs->at < runs->end && !ends) {
		ends = runs->at->offset & RUNTIME_RUN_ENDS;
		to[count++] = *runs->at++;
	}
	return count;
}

static bool is_loop_frame(struct symbols *symbols, const struct stack *stack, size_t i)
{
	struct named_frame named;

	if (!stack_sample_is_code(&stack->frames[i]) || stack->frames[i].module->anonymous)
		return false;
	frame_name_frame(symbols, stack, i, &named);
	return is_loop(named.raw ? named.raw : named.fn);
}

/* The native user frames of a stack: which of them are evaluation loops. */
struct natives {
	size_t begin, end;
	size_t loops;
	bool is_loop[STACK_FRAMES];
};

static void find_loops(struct symbols *symbols, const struct stack *stack, struct natives *n)
{
	n->begin = stack->kernel_frames;
	n->end = n->begin + stack->user_frames - stack->runtime_frames;
	n->loops = 0;
	for (size_t i = n->begin; i < n->end; i++) {
		n->is_loop[i - n->begin] = is_loop_frame(symbols, stack, i);
		n->loops += n->is_loop[i - n->begin];
	}
}

/*
 * Returns how many of the innermost loops have no run. Where all frames are known, a loop more is
 * one that has just been entered, or is about to return.
 */
static size_t count_idle(const struct stack *stack, const struct natives *n)
{
	size_t runs = 0;

	if (stack->runtime_end != RUNTIME_END_BASE)
		return 0;
	for (size_t i = n->end; i < n->end + stack->runtime_frames; i++)
		runs += i + 1 == n->end + stack->runtime_frames ||
			stack->frames[i].offset & RUNTIME_RUN_ENDS;
	return n->loops > runs ? n->loops - runs : 0;
}

void runtime_merge_stack(struct symbols *symbols, struct stack *stack)
{
	struct frame merged[STACK_SAMPLE_FRAMES_MAX];
	size_t count = 0, idle;
	struct natives natives;
	struct runs runs;

	if (!stack->runtime_frames || stack->user_frames - stack->runtime_frames > STACK_FRAMES)
		return;
	find_loops(symbols, stack, &natives);
	idle = count_idle(stack, &natives);
	runs = (struct runs){ stack->frames + natives.end,
			      stack->frames + natives.end + stack->runtime_frames };
	for (size_t i = natives.begin; i < natives.end; i++) {
		bool is_loop = natives.is_loop[i - natives.begin];

		if (is_loop)
			stack->frames[i].module->interprets = true;
		if (is_loop && !idle && runs.at < runs.end)
			count += take_run(&runs, merged + count);
		else
			merged[count++] = stack->frames[i];
		idle -= is_loop && idle;
	}
	while (runs.at < runs.end)
		merged[count++] = *runs.at++;
	memcpy(stack->frames + stack->kernel_frames, merged, count * sizeof(*merged));
	stack->user_frames = (uint16_t)count;
	stack->runtime_frames = 0;
}
