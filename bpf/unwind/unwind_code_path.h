/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_code_path.h: tracks where the registers of a frame are while its function is followed, one
 * instruction after the other (unwind_code.h).
 *
 * Conditional branches are treated as not taken: compilers keep the stack pointer equal on all
 * paths to an instruction.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_CODE_PATH_H
#define TROCAR_BPF_UNWIND_UNWIND_CODE_PATH_H

#include "bpf/unwind/unwind.h"
#include "bpf/unwind/unwind_insn.h"

#define UNWIND_CODE_INSNS     160  /* followed instructions per frame */
#define UNWIND_CODE_ALL	      2560 /* per walk; a leaf may take half: 4 KiB of code */
#define UNWIND_CODE_JUMPS     16
#define UNWIND_CODE_BACK      44u   /* bytes before a frame that are searched at once */
#define UNWIND_CODE_BACK_COST 1	    /* the same time, in instructions */
#define UNWIND_CODE_CUT	      3	    /* bytes of a pattern that may be in the next part */
#define UNWIND_CODE_BACKS     93    /* 4 KiB */
#define UNWIND_CODE_PAGE      4096u /* memory is resident or not by whole pages */

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define UNWIND_CODE_DECODES 0
#else
#define UNWIND_CODE_DECODES 1
#endif

enum unwind_code_answer {
	UNWIND_CODE_UNKNOWN,
	UNWIND_CODE_BY_POINTER, /* the frame pointer is this function's own */
	UNWIND_CODE_BY_STACK, /* the return address is at sp + now.sp, and fp is as in now.fp_is */
};

/* The finding of the search, from which the answer follows (unwind_code_decide). */
enum unwind_code_found {
	UNWIND_CODE_NOTHING,
	UNWIND_CODE_POINTER, /* an instruction shows that the frame pointer is the function's own */
	UNWIND_CODE_RETURN,  /* the function's return, at `now` */
	UNWIND_CODE_BEGIN,   /* its begin: `room`, `sets`, `proved` */
};

/* The value of the frame pointer at an instruction. */
enum unwind_code_fp {
	UNWIND_CODE_FP_OWN,   /* the value of the register at the frame */
	UNWIND_CODE_FP_LEVEL, /* the address sp + c->now.fp */
	UNWIND_CODE_FP_AT,    /* the word at sp + c->now.fp */
	UNWIND_CODE_FP_LOST,
};

/* The positions of the registers. Levels are bytes above the stack pointer of the frame. */
struct unwind_code_state {
	__u64 at; /* the next instruction; 0: none */
	__s64 sp, fp;
	__s64 saved; /* where the function has since saved its own frame pointer; 1: nowhere */
	__u32 fp_is; /* enum unwind_code_fp */
	__u32 calls;
};

/* State of a function that is being followed. */
struct unwind_code {
	struct unwind_code_state now;
	struct unwind_code_state back;	 /* at the first backward jump */
	struct unwind_code_state branch; /* at the first branch */
	__u64 start, end;		 /* of the range */
	__u64 left_out;			 /* while `aside`: address after the forward jump */
	__u64 read;			 /* address from which insn.code was read */
	__s64 pointer;			 /* level of the address in the frame pointer */
	__u32 valid;			 /* valid bytes of insn.code */
	__u32 jumps, jumps_back, branches, aside;
	__u32 found;	/* enum unwind_code_found */
	__u32 proved;	/* the finding is from the frame's own instructions */
	__u32 straight; /* the return was reached without a call or a jump */
	__u32 sets;	/* the begin sets the frame pointer */
	__s64 room;	/* bytes that the begin reserves; at most 0: no begin was found */
	__u32 ends;	/* an end of a function is between the begin and the frame */
	__u64 begin, frame_at;
	__u64 reach;	/* end of the function, from its branches; 0: unknown */
	__u64 odd_at;	/* target of the last branch taken with more than the frame; 0: none */
	__s64 odd_sp;	/* the level at that branch */
	__u64 known_as; /* frame_at, with UNWIND_CACHED_EXACT for a leaf */
	__u64 sum;	/* checksum of the code at the frame */
	__u32 place;	/* of the frame, in the cache */
	__u32 lost;	/* the frame pointer is not the frame's */
	__u32 leaf;	/* the task left user mode in this frame */
	__u32 made;	/* the code is in memory, not in a file */
	__u32 left;	/* instructions that the walk may still follow */
	__u32 given;	/* value of `left` at the begin of the frame */
	__u32 others;	/* instructions that are reserved for other frames */
	__u64 key;	/* UNWIND_CACHED_RANGE */
	struct unwind_insn insn;
};

#define UNWIND_CODE_NOWHERE 1 /* not a level of a saved register: those are multiples of 8 */

#define UNWIND_CODE_INLINE static __attribute__((always_inline)) inline

/* Reads the code at c->now.at. Returns 0, or -1 if it is outside of the range or cannot be read. */
UNWIND_CODE_INLINE long unwind_code_fill(struct unwind_code *c)
{
	__u64 bytes = UNWIND_CODE_PAGE - (c->now.at & (UNWIND_CODE_PAGE - 1));

	if (c->now.at < c->start || c->now.at >= c->end)
		return -1;
	c->read = c->now.at;
	c->valid = sizeof(c->insn.code);
	if (c->end - c->now.at < sizeof(c->insn.code))
		c->valid = (__u32)(c->end - c->now.at);
	if (unwind_read(c->insn.code, sizeof(c->insn.code), c->now.at) == 0)
		return 0;
	asm volatile("" : "+r"(bytes)); /* keeps the bound in a form that the verifier follows */
	if (bytes >= sizeof(c->insn.code))
		return -1;
	c->valid = (__u32)bytes;
	return unwind_read(c->insn.code, (__u32)bytes, c->now.at);
}

/* Handles a load of the frame pointer from `level`. */
UNWIND_CODE_INLINE void unwind_code_load_fp(struct unwind_code *c, __s64 level)
{
	c->now.fp_is = level == c->now.saved ? UNWIND_CODE_FP_OWN : UNWIND_CODE_FP_AT;
	c->now.fp = level;
}

/*
 * Follows a jump forward, or a jump back to code that such a jump has skipped: compilers move code
 * away, with a jump there and one back. Any other backward jump most likely closes a loop, and the
 * code after it belongs to the function. If the path through that code ends without a return, the
 * first of these jumps is followed instead.
 */
UNWIND_CODE_INLINE long unwind_code_jump(struct unwind_code *c, __s64 distance)
{
	__u64 to = c->now.at + (__u64)distance;

	if (distance >= 0 && !c->aside)
		c->left_out = c->now.at;
	if (distance >= 0 || (c->aside && to >= c->left_out)) {
		c->aside = distance >= 0;
		c->now.at = to;
	} else if (!c->jumps_back) {
		c->back = c->now;
		c->back.at = to;
		c->jumps_back = 1;
	}
	return ++c->jumps > UNWIND_CODE_JUMPS;
}

/*
 * Continues at the target of the first backward jump or, if that was done, of the first branch.
 * Returns 1 if there is neither.
 */
UNWIND_CODE_INLINE long unwind_code_resume(struct unwind_code *c)
{
	c->aside = 0;
	if (c->back.at) {
		c->now = c->back;
		c->back.at = 0;
		return 0;
	}
	if (!c->branch.at)
		return 1;
	c->now = c->branch;
	c->branch.at = 0;
	return 0;
}

/*
 * Sets the stack pointer from the frame pointer, which ends the search if that is the frame's own.
 * With `leave` also loads the frame pointer that is saved there.
 */
UNWIND_CODE_INLINE long unwind_code_leave(struct unwind_code *c, __u32 leave)
{
	if (c->now.fp_is == UNWIND_CODE_FP_OWN)
		c->found = UNWIND_CODE_POINTER;
	if (c->now.fp_is != UNWIND_CODE_FP_LEVEL)
		return 1;
	c->now.sp = c->now.fp + c->insn.value;
	if (!leave)
		return 0;
	unwind_code_load_fp(c, c->now.fp);
	c->now.sp += UNWIND_WORD;
	return 0;
}

/* Applies one instruction. Returns 1 if nothing more can be learnt, else 0. */
UNWIND_GLOBAL int unwind_code_apply(struct unwind_code *c, __u32 effect)
{
	__s64 value;

	if (!c)
		return 1;
	value = c->insn.value;
	switch (effect) {
	case UNWIND_INSN_NONE:
		return 0;
	case UNWIND_INSN_SP_ADD:
		c->now.sp += value;
		return 0;
	case UNWIND_INSN_CALL:
		c->now.calls++;
		return 0;
	case UNWIND_INSN_SP_FROM_FP:
	case UNWIND_INSN_LEAVE:
		return unwind_code_leave(c, effect == UNWIND_INSN_LEAVE);
	case UNWIND_INSN_FP_FROM_SP:
		c->now.fp_is = UNWIND_CODE_FP_LEVEL;
		c->now.fp = c->now.sp + value;
		return 0;
	case UNWIND_INSN_FP_PUSH:
		c->now.sp -= UNWIND_WORD;
		if (c->now.fp_is == UNWIND_CODE_FP_OWN)
			c->now.saved = c->now.sp;
		return 0;
	case UNWIND_INSN_FP_STORE:
		if (c->now.fp_is == UNWIND_CODE_FP_OWN)
			c->now.saved = c->now.sp + value;
		return 0;
	case UNWIND_INSN_FP_POP:
		unwind_code_load_fp(c, c->now.sp);
		c->now.sp += UNWIND_WORD;
		return 0;
	case UNWIND_INSN_FP_LOAD:
		unwind_code_load_fp(c, c->now.sp + value);
		return 0;
	case UNWIND_INSN_FP_LOST:
		c->now.fp_is = UNWIND_CODE_FP_LOST;
		return 0;
	case UNWIND_INSN_BRANCH:
		if (!c->branches++) {
			c->branch = c->now;
			c->branch.at += (__u64)value;
		}
		return 0;
	case UNWIND_INSN_JUMP:
		return unwind_code_jump(c, value);
	case UNWIND_INSN_RETURN:
		c->found = UNWIND_CODE_RETURN;
		c->straight = !c->now.calls && !c->jumps;
		return 1;
	default:
		return unwind_code_resume(c);
	}
}

/* Decodes the next instruction. Returns its effect; UNWIND_INSN_END if it cannot be read. */
UNWIND_CODE_INLINE __u32 unwind_code_next(struct unwind_code *c)
{
	__u64 offset = c->now.at - c->read;
	__u32 effect;

	c->insn.based = 0;
	if (offset > UNWIND_INSN_BYTES - UNWIND_INSN_MAX - 1 || offset >= c->valid) {
		if (unwind_code_fill(c) != 0)
			return UNWIND_INSN_END;
		offset = 0;
	}
	c->insn.offset = (__u32)offset;
	effect = (__u32)unwind_insn_read(&c->insn);
	if (c->insn.offset + c->insn.bytes > c->valid) {
		c->insn.based = 0;
		return UNWIND_INSN_END;
	}
	c->left--;
	c->now.at += c->insn.bytes;
	return effect;
}

/* Sets the state at the first instruction to follow. */
UNWIND_CODE_INLINE void unwind_code_start(struct unwind_code *c, __u64 at)
{
	c->now.at = at;
	c->now.sp = c->now.fp = 0;
	c->now.saved = UNWIND_CODE_NOWHERE;
	c->now.fp_is = UNWIND_CODE_FP_OWN;
	c->now.calls = 0;
	c->read = at;
	c->valid = 0;
}

#endif
