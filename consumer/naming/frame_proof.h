/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_proof.h: looks in the files for proof that no caller is missing in a stack. Code that
 * leaves the frame pointer alone hands on that of an earlier function, so a step by it may leap
 * over callers and yet come to the outermost frame. A step counts as proved when the memory between
 * both frames holds no return address (SAMPLE_ADJACENT, by the kernel side), when the frame below
 * lies in a function that has set its frame pointer, or when the call before the return
 * address calls this function. Report thread only.
 */
#ifndef TROCAR_CONSUMER_NAMING_FRAME_PROOF_H
#define TROCAR_CONSUMER_NAMING_FRAME_PROOF_H

#include "consumer/naming/code_files.h"
#include "consumer/naming/frame_name.h"

/*
 * Sets the proofs that frame_name_quality needs for the `n` named frames of `stack`, leaf first:
 * `entry` of the outermost one; and where the stack may be complete, `unproved` of each user frame.
 */
void frame_proof_judge(struct code_files *code, const struct stack *stack,
		       struct named_frame *frames, size_t n);

#endif
