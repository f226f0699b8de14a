/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_frame.h: where a function's frame is, from instruction to instruction. */
#ifndef TROCAR_CONSUMER_UNWIND_FRAME_H
#define TROCAR_CONSUMER_UNWIND_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/unwind/infer/x86_insn.h"
#include "shared/abi/unwind_abi.h"

#define UNWIND_FRAME_ENTRY 8 /* sp of a function that begins: the return address alone */

enum unwind_frame_kind {
	UNWIND_FRAME_NORMAL,
	UNWIND_FRAME_LOST,   /* nothing leads to the caller */
	UNWIND_FRAME_END,    /* there is no caller */
	UNWIND_FRAME_SIGNAL, /* the kernel's */
};

/* Before an instruction. Frames that are the same have the same bytes. */
struct unwind_frame {
	uint8_t kind, fp, sp_known, fp_known;
	int32_t sp;    /* the frame address less sp, where that is known */
	int32_t base;  /* the same of fp, where fp points into the frame */
	int32_t saved; /* where the caller's fp is, from the frame address on */
};

/* Makes it the frame behind an instruction; one that leads elsewhere changes nothing. */
void unwind_frame_apply(struct unwind_frame *f, const struct x86_insn *insn);

/* Whether it is that of a function that has just begun, or is about to return. */
bool unwind_frame_entry(const struct unwind_frame *f);

/* The rule of shared/abi/unwind_abi.h that says the same. */
struct unwind_rule unwind_frame_rule(const struct unwind_frame *f);

#endif
