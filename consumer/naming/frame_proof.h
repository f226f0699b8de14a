/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_proof.h: searches the files for proof that a stack lacks no caller. Code that does not
 * touch the frame pointer passes on the one of an earlier function, so a frame-pointer step may
 * skip callers and still reach the outermost frame. A step is proved if the memory between both
 * frames holds no return address (SAMPLE_ADJACENT, set by the kernel side), if the previous frame
 * is in a function that has set its frame pointer, or if the call before the return address calls
 * this function. Report thread only.
 */
#ifndef TROCAR_CONSUMER_NAMING_FRAME_PROOF_H
#define TROCAR_CONSUMER_NAMING_FRAME_PROOF_H

#include "consumer/naming/code_files.h"
#include "consumer/naming/frame_name.h"

/*
 * Sets the proofs that frame_name_quality needs for the `n` named frames of `stack`, leaf first:
 * `entry` of the outermost frame, and, if the stack may be complete, `unproved` of each user frame.
 */
void frame_proof_judge(struct code_files *code, const struct stack *stack,
		       struct named_frame *frames, size_t n);

#endif
