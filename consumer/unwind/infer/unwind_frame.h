/* SPDX-License-Identifier: BSD-2-Clause */
/* unwind_frame.h: tracks the position of a function's frame from instruction to instruction. */
#ifndef TROCAR_CONSUMER_UNWIND_INFER_UNWIND_FRAME_H
#define TROCAR_CONSUMER_UNWIND_INFER_UNWIND_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/unwind_abi.h"
#include "shared/elf/x86_insn.h"

#define UNWIND_FRAME_ENTRY 8 /* sp at the start of a function: only the return address is below */

enum unwind_frame_kind {
	UNWIND_FRAME_NORMAL,
	UNWIND_FRAME_LOST,   /* the position of the caller's frame is unknown */
	UNWIND_FRAME_END,    /* the function has no caller */
	UNWIND_FRAME_SIGNAL, /* a signal frame, which the kernel made */
};

/* The frame before an instruction. Frames that are equal have the same bytes. */
struct unwind_frame {
	uint8_t kind, fp, sp_known, fp_known;
	int32_t sp;    /* the frame address minus sp, if it is known */
	int32_t base;  /* the frame address minus fp, if fp points into the frame */
	int32_t saved; /* offset of the saved caller's fp from the frame address */
};

/*
 * Changes `f` into the frame after an instruction. An instruction that transfers control changes
 * nothing.
 */
void unwind_frame_apply(struct unwind_frame *f, const struct x86_insn *insn);

/* Returns whether `f` is the frame of a function that has just begun, or is about to return. */
bool unwind_frame_entry(const struct unwind_frame *f);

/* Returns the rule of shared/abi/unwind_abi.h that describes the same frame. */
struct unwind_rule unwind_frame_rule(const struct unwind_frame *f);

#endif
