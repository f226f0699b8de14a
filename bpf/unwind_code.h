/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_code.h: follows the instructions of a frame's function to where it returns, and says where
 * its return address is. It serves code that has no call frame information: what a runtime made,
 * and files without tables.
 *
 * A function that keeps a frame pointer shows it: it reads memory below the pointer, or sets its
 * stack pointer from it, before it changes it. One that has inherited the pointer of an earlier
 * function does neither. Of any other function the instructions up to its return say by how much
 * the stack pointer moves, and so where the return address is. Conditional branches are taken not
 * to branch: compilers keep the stack pointer the same on all paths to one instruction.
 *
 * Only code is read, within the range that holds the frame. What it decides is which word of the
 * stack is taken for a return address, and that word becomes a frame only if it is an address of
 * code. x86-64 only: elsewhere the answer is always UNWIND_CODE_UNKNOWN.
 */
#ifndef TROCAR_BPF_UNWIND_CODE_H
#define TROCAR_BPF_UNWIND_CODE_H

#include "bpf/unwind.h"
#include "bpf/unwind_insn.h"

#define UNWIND_CODE_INSNS     160  /* that are followed for one frame */
#define UNWIND_CODE_ALL	      1280 /* for one walk */
#define UNWIND_CODE_JUMPS     16
#define UNWIND_CODE_BACK      44u /* bytes that are searched at once before a frame */
#define UNWIND_CODE_BACK_COST 1	  /* instructions that take as long */
#define UNWIND_CODE_CUT	      3	  /* of what is searched, the bytes that may be in the next part */
#define UNWIND_CODE_BACKS     93  /* 4 KiB */
#define UNWIND_CODE_PAGE      4096u /* memory is resident or not by whole pages */

#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define UNWIND_CODE_DECODES 0
#else
#define UNWIND_CODE_DECODES 1
#endif

enum unwind_code_answer {
	UNWIND_CODE_UNKNOWN,
	UNWIND_CODE_BY_POINTER, /* the frame pointer is this function's own */
	UNWIND_CODE_BY_STACK,	/* the return address is at sp + now.sp, and fp as now.fp_is says */
};

/* What the frame pointer is at an instruction. */
enum unwind_code_fp {
	UNWIND_CODE_FP_OWN,   /* what the register held at the frame */
	UNWIND_CODE_FP_LEVEL, /* the address sp + c->now.fp */
	UNWIND_CODE_FP_AT,    /* the word that is at sp + c->now.fp */
	UNWIND_CODE_FP_LOST,
};

/* Where the registers are. Levels are bytes from the stack pointer of the frame up. */
struct unwind_code_state {
	__u64 at; /* the next instruction; 0: none */
	__s64 sp, fp;
	__s64 saved; /* where the function has saved its own frame pointer since; 1: nowhere */
	__u32 fp_is; /* enum unwind_code_fp */
	__u32 calls;
};

/* A function while it is followed. */
struct unwind_code {
	struct unwind_code_state now;
	struct unwind_code_state back;	 /* at the first jump that led back */
	struct unwind_code_state branch; /* at the first branch */
	__u64 start, end;		 /* of the range */
	__u64 left_out;			 /* while `aside`: where a jump has led on */
	__u64 read;			 /* where insn.code was read */
	__s64 pointer;			 /* level that the frame pointer points to */
	__u32 valid;			 /* bytes of insn.code */
	__u32 jumps, jumps_back, branches, aside;
	__u32 answer; /* enum unwind_code_answer */
	__u32 proved; /* the answer is what the frame's own instructions say */
	__u32 sets;   /* the beginning sets the frame pointer */
	__s64 room;   /* that it makes; at most 0: no beginning was found */
	__u64 begin, frame_at;
	__u64 same_at; /* a frame of this walk whose beginning was proved: a recursion has it again
			*/
	__u32 lost;    /* the frame pointer is not the frame's */
	__u32 leaf;    /* the frame is where the task left user mode */
	__u32 made;    /* the code is in memory, not in a file */
	__u32 left;    /* instructions that the walk may follow yet */
	struct unwind_insn insn;
};

#define UNWIND_CODE_NOWHERE 1 /* no level of a saved register: those are multiples of 8 */

#define UNWIND_CODE_INLINE static __attribute__((always_inline)) inline

/* Reads the code at c->now.at. Returns 0, or -1 when it lies outside of the range or cannot be
 * read. */
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
	asm volatile("" : "+r"(bytes)); /* keeps the bound in a form that the verifier sees */
	if (bytes >= sizeof(c->insn.code))
		return -1;
	c->valid = (__u32)bytes;
	return unwind_read(c->insn.code, (__u32)bytes, c->now.at);
}

/* The frame pointer is loaded from `level`. */
UNWIND_CODE_INLINE void unwind_code_load_fp(struct unwind_code *c, __s64 level)
{
	c->now.fp_is = level == c->now.saved ? UNWIND_CODE_FP_OWN : UNWIND_CODE_FP_AT;
	c->now.fp = level;
}

/*
 * Sets the answer at a return. The frame pointer is proved where it leads to the same place. Else
 * the place of the return address is what the instructions say, if they are this function's: a call
 * on the way, or the one that the frame waits for, may never return, and then another function
 * stands behind it. A whole one leaves the stack pointer where it is; of a part of one, which
 * compilers put aside in files only, a jump leads back.
 */
UNWIND_CODE_INLINE void unwind_code_return(struct unwind_code *c)
{
	__u32 straight = !c->now.calls && !c->jumps;

	if (c->now.fp_is == UNWIND_CODE_FP_AT && c->now.fp == c->pointer &&
	    c->now.sp == c->pointer + UNWIND_WORD)
		c->answer = UNWIND_CODE_BY_POINTER;
	else if (c->now.fp_is != UNWIND_CODE_FP_LEVEL && (straight || c->made) &&
		 (c->now.sp > 0 || (c->now.sp == 0 && straight && c->leaf)))
		c->answer = UNWIND_CODE_BY_STACK;
}

/*
 * Follows a jump that leads on, or back to what such a jump has left out: to code that compilers
 * put aside and back. Any other that leads back closes a loop, most likely, and what is behind it
 * belongs to the function: where the way there ends without a return, the first of them is followed
 * after all.
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
 * Goes on where the first jump led back, or at last where the first branch leads. Returns 1 when
 * there is neither.
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
 * Sets the stack pointer from the frame pointer, which ends the search if that is the frame's own,
 * and with `leave` loads the one that is saved there.
 */
UNWIND_CODE_INLINE long unwind_code_leave(struct unwind_code *c, __u32 leave)
{
	if (c->now.fp_is == UNWIND_CODE_FP_OWN)
		c->answer = UNWIND_CODE_BY_POINTER;
	if (c->now.fp_is != UNWIND_CODE_FP_LEVEL)
		return 1;
	c->now.sp = c->now.fp + c->insn.value;
	if (!leave)
		return 0;
	unwind_code_load_fp(c, c->now.fp);
	c->now.sp += UNWIND_WORD;
	return 0;
}

/* What one instruction does. Returns 1 when nothing more is to be learnt. */
UNWIND_CODE_INLINE long unwind_code_apply(struct unwind_code *c, __u32 effect)
{
	__s64 value = c->insn.value;

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
		unwind_code_return(c);
		return 1;
	default:
		return unwind_code_resume(c);
	}
}

struct unwind_code_loop {
	struct unwind_code *code; /* bpf_loop takes a place on the BPF stack alone */
};

#define UNWIND_CODE_PROLOGUE   0xec8b4855u /* push %rbp; mov %rsp,%rbp */
#define UNWIND_CODE_PROLOGUE_1 0xe5894855u
#define UNWIND_CODE_ROOM       0xec834855u /* push %rbp; sub $..., %rsp, of one byte and of four */
#define UNWIND_CODE_ROOM_4     0xec814855u
#define UNWIND_CODE_LEFT       0xc35du /* pop %rbp; ret */
#define UNWIND_CODE_LEFT_1     0xc3c9u /* leave; ret */

/* Returns the bytes that a sub at `at` of the code takes from the stack pointer, or -1. */
UNWIND_CODE_INLINE __s64 unwind_code_room(const struct unwind_insn *i, __u32 at)
{
	__u32 head = unwind_insn_byte(i, at) | unwind_insn_byte(i, at + 1) << 8 |
		     unwind_insn_byte(i, at + 2) << 16;

	if (head != UNWIND_CODE_ROOM >> 8 && head != UNWIND_CODE_ROOM_4 >> 8)
		return -1;
	return unwind_insn_number(i, at + 3, head == UNWIND_CODE_ROOM >> 8 ? 1 : 4);
}

/* Sets *place to `at` where `differs` is 0, without a branch on it, like unwind_search. */
UNWIND_CODE_INLINE void unwind_code_note(__u32 *place, __u32 at, __u32 differs)
{
	__u32 negative = -differs, keep;

	asm volatile("" : "+r"(negative)); /* keeps the compiler from a comparison */
	keep = (differs | negative) >> 31;
	*place = (*place & -keep) | (at & (keep - 1));
}

#define UNWIND_CODE_ONES  0x0101010101010101ull
#define UNWIND_CODE_HIGHS 0x8080808080808080ull

/*
 * Returns 0 when the code to be searched has no push of the frame pointer and no return, by eight
 * bytes at once: x - 1 has borrowed from bit 8 where a byte was 0.
 */
UNWIND_CODE_INLINE __u64 unwind_code_may_begin(const struct unwind_insn *i)
{
	__u64 found = 0;

	for (__u32 n = 0; n < (UNWIND_CODE_BACK + UNWIND_CODE_CUT + 1) / sizeof(__u64); n++) {
		__u64 push = i->words[n] ^ 0x55 * UNWIND_CODE_ONES;
		__u64 ret = i->words[n] ^ 0xc3 * UNWIND_CODE_ONES;

		found |= ((push - UNWIND_CODE_ONES) & ~push) | ((ret - UNWIND_CODE_ONES) & ~ret);
	}
	return found & UNWIND_CODE_HIGHS;
}

/* Sets the answer by the room that the beginning makes, behind which a return address is. */
UNWIND_CODE_INLINE void unwind_code_begun(struct unwind_code *c)
{
	if (c->sets && c->room == c->pointer && !c->lost)
		c->answer = UNWIND_CODE_BY_POINTER;
	if (c->sets)
		return;
	c->now.fp_is = UNWIND_CODE_FP_AT;
	c->now.fp = c->room;
	c->now.sp = c->room + UNWIND_WORD;
	c->insn.value = 0;
	c->answer = UNWIND_CODE_BY_STACK;
}

/*
 * Searches the code that was read for the last instructions that begin a function: they save the
 * frame pointer, and set another or make room. Returns 1 when it has found them, or a function's
 * end.
 */
UNWIND_GLOBAL int unwind_code_search(struct unwind_code *c)
{
	__u32 set = 0, room = 0, left = 0, word = 0;

	if (!c)
		return 1;
	for (__u32 i = 0; i < UNWIND_CODE_BACK + UNWIND_CODE_CUT; i++) {
		word = word >> 8 | unwind_insn_byte(&c->insn, i) << 24;
		unwind_code_note(&set, i + 1, word ^ UNWIND_CODE_PROLOGUE);
		unwind_code_note(&set, i + 1, word ^ UNWIND_CODE_PROLOGUE_1);
		unwind_code_note(&room, i + 1, (word ^ UNWIND_CODE_ROOM) & ~0x20000u);
		unwind_code_note(&left, i + 1, word >> 16 ^ UNWIND_CODE_LEFT);
		unwind_code_note(&left, i + 1, word >> 16 ^ UNWIND_CODE_LEFT_1);
	}
	if (!set && !room)
		return left != 0;
	c->sets = set > room;
	if (left <= (set > room ? set : room))
		c->room = unwind_code_room(&c->insn, set > room ? set : room - 3);
	c->now.at += (set > room ? set : room) - sizeof(word);
	return 1;
}

/* Searches the UNWIND_CODE_BACK bytes below c->now.at. Returns 1 when no more are to be. */
static long unwind_code_back(__u32 n, struct unwind_code_loop *loop)
{
	struct unwind_code *c = loop->code;

	if (c->now.at == c->start || c->left < UNWIND_CODE_BACK_COST)
		return 1;
	c->left -= UNWIND_CODE_BACK_COST;
	c->now.at -=
		c->now.at - c->start < UNWIND_CODE_BACK ? c->now.at - c->start : UNWIND_CODE_BACK;
	if (unwind_read(c->insn.code, sizeof(c->insn.code), c->now.at) != 0)
		return 1;
	return unwind_code_may_begin(&c->insn) && unwind_code_search(c);
}

/* Decodes the next instruction. Returns its effect; UNWIND_INSN_END when it cannot be read. */
UNWIND_CODE_INLINE __u32 unwind_code_next(struct unwind_code *c)
{
	__u64 offset = c->now.at - c->read;
	__u32 effect;

	if (offset > UNWIND_INSN_BYTES - UNWIND_INSN_MAX - 1 || offset >= c->valid) {
		if (unwind_code_fill(c) != 0)
			return UNWIND_INSN_END;
		offset = 0;
	}
	c->insn.offset = (__u32)offset;
	effect = (__u32)unwind_insn_read(&c->insn);
	if (c->insn.offset + c->insn.bytes > c->valid)
		return UNWIND_INSN_END;
	c->left--;
	c->now.at += c->insn.bytes;
	return effect;
}

/* Follows one instruction. */
static long unwind_code_insn(__u32 n, struct unwind_code_loop *loop)
{
	struct unwind_code *c = loop->code;
	__u32 effect = unwind_code_next(c);

	if (effect != UNWIND_INSN_END && c->insn.based && c->now.fp_is == UNWIND_CODE_FP_OWN &&
	    !c->now.calls) {
		c->answer = UNWIND_CODE_BY_POINTER;
		return 1;
	}
	return unwind_code_apply(c, effect);
}

/* Whether the registers are at the frame where the beginning says. */
UNWIND_CODE_INLINE __u32 unwind_code_agrees(const struct unwind_code *c)
{
	if (c->now.sp != -c->room - UNWIND_WORD)
		return 0;
	return !c->sets ||
	       (c->now.fp_is == UNWIND_CODE_FP_LEVEL && c->now.fp - c->now.sp == c->room);
}

/*
 * Follows one instruction on the way from the beginning to the frame: that no function ends between
 * them is the proof that they are one. Levels count from the return address here.
 */
static long unwind_code_up(__u32 n, struct unwind_code_loop *loop)
{
	struct unwind_code *c = loop->code;
	__u32 effect;
	__u64 to;

	if (c->now.at >= c->frame_at) {
		c->proved = c->now.at == c->frame_at && unwind_code_agrees(c);
		return 1;
	}
	effect = unwind_code_next(c);
	to = c->now.at + (__u64)c->insn.value;
	if (effect == UNWIND_INSN_JUMP) /* with its frame, and to a place near by */
		return c->now.sp >= -UNWIND_WORD || to < c->begin ||
		       to > c->frame_at + UNWIND_CODE_PAGE;
	if (effect == UNWIND_INSN_BRANCH)
		return 0;
	if (effect == UNWIND_INSN_RETURN || effect == UNWIND_INSN_END ||
	    effect == UNWIND_INSN_LEAVE || effect == UNWIND_INSN_SP_FROM_FP)
		return 1;
	return unwind_code_apply(c, effect);
}

/* Sets the state at the first instruction that is to be followed. */
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

/*
 * Follows the function of `f`, whose code lies in `range` (struct unwind_ranges), and takes the
 * instructions off c->left. Returns enum unwind_code_answer.
 */
UNWIND_GLOBAL int unwind_code_follow(struct unwind_code *c, const struct unwind_frame *f,
				     __u64 range)
{
	struct unwind_code_loop loop = { .code = c };

	if (!UNWIND_CODE_DECODES || !c || !f)
		return UNWIND_CODE_UNKNOWN;
	c->start = UNWIND_RANGE_PAGE(range) << UNWIND_RANGE_SHIFT;
	c->end = c->start + (UNWIND_RANGE_PAGES(range) << UNWIND_RANGE_SHIFT);
	unwind_code_start(c, f->pc);
	if (f->fp_lost)
		c->now.fp_is = UNWIND_CODE_FP_LOST;
	c->back.at = c->branch.at = 0;
	c->jumps = c->jumps_back = c->branches = c->aside = 0;
	c->pointer = (__s64)(f->fp - f->sp);
	c->frame_at = f->pc;
	c->leaf = f->exact;
	c->lost = f->fp_lost;
	c->proved = 1;
	c->answer = UNWIND_CODE_UNKNOWN;
	if (c->left == UNWIND_CODE_ALL)
		c->same_at = 0;
	if (c->same_at == f->pc) {
		unwind_code_begun(c);
		return (int)c->answer;
	}
	c->room = 0;
	bpf_loop(c->left < UNWIND_CODE_INSNS ? c->left : UNWIND_CODE_INSNS, unwind_code_insn, &loop,
		 0);
	if (c->answer != UNWIND_CODE_UNKNOWN || !c->made ||
	    f->pc - c->start <= UNWIND_CODE_BACK + UNWIND_CODE_CUT)
		return (int)c->answer;
	c->now.at = f->pc - UNWIND_CODE_CUT;
	bpf_loop(UNWIND_CODE_BACKS, unwind_code_back, &loop, 0);
	if (c->room <= 0)
		return UNWIND_CODE_UNKNOWN;
	c->proved = 0;
	c->begin = c->now.at;
	unwind_code_start(c, c->begin);
	bpf_loop(c->left, unwind_code_up, &loop, 0);
	c->same_at = c->proved ? f->pc : 0;
	unwind_code_begun(c);
	return (int)c->answer;
}

#endif
