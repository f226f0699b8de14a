/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/frame_proof.h"

#include <string.h>

#include "consumer/naming/frame_entry.h"
#include "consumer/naming/frame_pointer.h"
#include "shared/tools/macro.h"

#define CALL_BYTES 5 /* of a direct call: e8 and a signed distance */

/* One step by the frame pointer, from frame `i - 1` to its caller, frame `i`. */
struct step {
	const struct stack *stack;
	const struct named_frame *named;
	size_t i;
	const struct code_file *file; /* of the frame below */
};

static uint32_t word_at(const uint8_t *code)
{
	uint32_t word;

	memcpy(&word, code, sizeof(word));
	return word;
}

/* Returns whether the frame below keeps a frame pointer, by its function's instructions. */
static bool keeps_pointer(const struct step *s)
{
	const struct named_frame *f = &s->named[s->i - 1];

	return frame_pointer_is_set(s->file, f->start, f->offset,
				    frame_name_is_caller(s->stack, s->i - 1));
}

/*
 * Returns the offset that the call before the return address `at` calls; 0: a call by a register,
 * or no call.
 */
static uint64_t called_at(const struct code_file *file, uint64_t at)
{
	uint8_t code[CALL_BYTES];
	int32_t distance;

	if (!code_files_read(file, at - CALL_BYTES, code, sizeof(code)))
		return 0;
	distance = (int32_t)word_at(code + 1);
	if (!file->arm64)
		return code[0] == 0xe8 ? at + (uint64_t)(int64_t)distance : 0;
	if ((distance & 0xfc000000) != 0x94000000) /* bl: words, from the call itself */
		return 0;
	return at - 4 + (uint64_t)(int64_t)((int32_t)((uint32_t)distance << 6) >> 6) * 4;
}

/*
 * Returns whether the call before the return address directly calls the function of the frame
 * below. For a leaf this proves nothing: it may not have set its frame pointer yet, and have called
 * itself.
 */
static bool is_called(const struct step *s)
{
	return frame_name_is_caller(s->stack, s->i - 1) &&
	       s->stack->frames[s->i].module == s->stack->frames[s->i - 1].module &&
	       called_at(s->file, s->named[s->i].offset) == s->named[s->i - 1].start;
}

/* Returns whether no frame can be missing between frames `i - 1` and `i`. */
static bool is_proved(struct code_files *code, const struct stack *stack,
		      const struct named_frame *named, size_t i)
{
	struct step s = { .stack = stack, .named = named, .i = i };
	const struct module *below = stack->frames[i - 1].module;

	if (stack->frames[i].module == &stack_sample_runtime)
		return true; /* the runtime itself keeps its frames in a list */
	if (stack->frames[i].module == &stack_sample_unknown)
		return false; /* it has no marks */
	if (stack->flags & SAMPLE_UNWOUND && !stack_sample_followed(&stack->frames[i]))
		return true;
	if (stack_sample_adjacent(&stack->frames[i]))
		return true;
	if (!stack_sample_is_code(&stack->frames[i - 1]) || below->anonymous || !named[i - 1].fn)
		return false;
	s.file = code_files_get(code, below);
	return s.file && (keeps_pointer(&s) || is_called(&s));
}

void frame_proof_judge(struct code_files *code, const struct stack *stack,
		       struct named_frame *frames, size_t n)
{
	const struct module *m;
	struct named_frame *root;
	size_t end = n;

	while (end && frame_name_is_runtime(&frames[end - 1]))
		end--;
	m = end ? stack->frames[end - 1].module : NULL;
	if (end <= stack->kernel_frames || !m)
		return;
	root = &frames[end - 1];
	if (!m->anonymous && stack_sample_is_code(&stack->frames[end - 1]))
		root->entry = frame_entry_is(code, m, root);
	if (!root->entry &&
	    !(stack->flags & SAMPLE_UNWOUND && stack->stop_reason == UNWIND_END_COMPLETE))
		return; /* it is broken in any case */
	for (size_t i = stack->kernel_frames + 1u; i < n; i++)
		frames[i].unproved = !is_proved(code, stack, frames, i);
}
