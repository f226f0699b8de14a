/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_walk.c: a whole walk of bpf/unwind_walk.h over any ranges, process table, files, pool,
 * rules, registers and memory, while somebody writes to all of them: the ranges between two steps
 * (a filling), the rest also in the middle of one. A walk is bounded in steps and in look-ups; no
 * frame is told but the innermost and those that were in a range; frames ascend, but at a signal's;
 * the same input gives the same stack, whatever walks of other fillings are remembered.
 */
#include "tests/fuzz/unwind/walk_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What the last step did, and what the next may tell. */
static void check_step(const struct unwind_walk *w, const struct taken *so_far)
{
	if (so_far->count > 0) {
		/* A leaf's return address may be in a register, and no bytes of it on the stack. */
		assert(w->frame.sp > run.sp_before || w->frame.exact ||
		       (so_far->count == 1 && w->frame.sp == run.sp_before));
		assert(w->frame.sp <= w->frame.top && w->frame.signals <= UNWIND_SIGNALS_MAX);
		assert(w->end == UNWIND_END_NONE);
		/* The range was there when the frame was told: nobody writes to one in a step. */
		assert(so_far->count == 1 || in_range(so_far->frames[so_far->count - 1]));
	}
	run.lookups = 0;
	tick(false);
	run.sp_before = w->frame.sp;
}

/* The same once more, behind a walk of another filling where each range is walked otherwise. */
static void take_again(const struct input *in, const uint8_t *memory, size_t bytes,
		       struct taken *ret)
{
	struct input other = *in;

	for (size_t i = 0; i < SMALL; i++)
		other.mappings[i] = in->mappings[(i + 1) % SMALL];
	forget();
	take(&other, 2, memory, bytes, check_step, ret);
	take(in, 1, memory, bytes, check_step, ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t head = MIN(bytes, sizeof(struct input));
	struct input in = { 0 };
	struct taken once, again;

	memcpy(&in, data, head);
	forget();
	take(&in, 1, data + head, bytes - head, check_step, &once);
	take_again(&in, data + head, bytes - head, &again);
	assert(once.count > 0 && once.count <= STACK_FRAMES && once.frames[0] == in.pc);
	assert(once.end > UNWIND_END_NONE && once.end < UNWIND_END_COUNT_);
	assert(once.end != UNWIND_END_DEPTH || once.count == STACK_FRAMES);
	assert(once.end != UNWIND_END_SWITCHED || once.count == 1);
	assert(once.count == again.count && once.end == again.end);
	assert(memcmp(once.frames, again.frames, sizeof(once.frames)) == 0);
	return 0;
}
