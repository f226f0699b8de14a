/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/report/frame_proof.h"

#include "consumer/report/frame_entry.h"

void frame_proof_judge(struct code_files *code, const struct stack *stack,
		       struct named_frame *frames, size_t n)
{
	const struct module *m = n ? stack->frames[n - 1].module : NULL;

	if (n <= stack->kernel_frames || !m || m->anonymous || m == &stack_sample_unknown)
		return;
	frames[n - 1].entry = frame_entry_is(code, m, &frames[n - 1]);
}
