/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame_proof.h: looks in the files for proof that a stack is what it seems to be. Report thread
 * only.
 */
#ifndef TROCAR_CONSUMER_REPORT_FRAME_PROOF_H
#define TROCAR_CONSUMER_REPORT_FRAME_PROOF_H

#include "consumer/report/code_files.h"
#include "consumer/report/frame_name.h"

/*
 * Sets what frame_name_quality asks of the `n` named frames of `stack`, leaf first: `entry` of the
 * outermost one.
 */
void frame_proof_judge(struct code_files *code, const struct stack *stack,
		       struct named_frame *frames, size_t n);

#endif
