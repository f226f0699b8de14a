/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_code.h: follows the instructions of a frame's function to its return, and finds its return
 * address. It is used for code without call frame information: code that a runtime generated, and
 * files without tables.
 *
 * A function that keeps a frame pointer shows it: before it changes the pointer, it reads memory
 * below the pointer, or sets its stack pointer from it. A function that has inherited the pointer
 * of an earlier function does neither. For any other function the instructions up to its return
 * give the movement of the stack pointer, and so the place of the return address.
 *
 * Only code is read, within the range that contains the frame. The result only selects which word
 * of the stack is used as a return address, and that word becomes a frame only if it is an address
 * of code. x86-64 only: on other architectures the answer is always UNWIND_CODE_UNKNOWN.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_CODE_H
#define TROCAR_BPF_UNWIND_UNWIND_CODE_H

#include "bpf/unwind/unwind_cache.h"
#include "bpf/unwind/unwind_code_cache.h"
#include "bpf/unwind/unwind_code_path.h"

/*
 * Returns the answer at a return. The frame pointer is proved if it leads to the same place.
 * Otherwise the instructions give the place of the return address, if they belong to this function.
 * A call on the way, or the call that the frame waits for, may never return, and then the code
 * after it belongs to another function. A whole function leaves the stack pointer where it is. A
 * part of a function, which compilers move away in files only, is left by a jump back.
 */
UNWIND_CODE_INLINE enum unwind_code_answer unwind_code_returns(const struct unwind_code *c)
{
	if (c->now.fp_is == UNWIND_CODE_FP_AT && c->now.fp == c->pointer &&
	    c->now.sp == c->pointer + UNWIND_WORD)
		return UNWIND_CODE_BY_POINTER;
	if (c->now.fp_is != UNWIND_CODE_FP_LEVEL && (c->straight || c->made) &&
	    (c->now.sp > 0 || (c->now.sp == 0 && c->straight && c->leaf)))
		return UNWIND_CODE_BY_STACK;
	return UNWIND_CODE_UNKNOWN;
}

struct unwind_code_loop {
	struct unwind_code *code; /* bpf_loop accepts only memory on the BPF stack */
};

#define UNWIND_CODE_ROOM   0xec834855u /* push %rbp; sub $..., %rsp with one byte or four */
#define UNWIND_CODE_ROOM_4 0xec814855u

/*
 * Returns the number of bytes that a sub at `at` of the code takes from the stack pointer, or -1.
 */
UNWIND_CODE_INLINE __s64 unwind_code_room(const struct unwind_insn *i, __u32 at)
{
	__u32 head = unwind_insn_byte(i, at) | unwind_insn_byte(i, at + 1) << 8 |
		     unwind_insn_byte(i, at + 2) << 16;

	if (head != UNWIND_CODE_ROOM >> 8 && head != UNWIND_CODE_ROOM_4 >> 8)
		return -1;
	return unwind_insn_number(i, at + 3, head == UNWIND_CODE_ROOM >> 8 ? 1 : 4);
}

#define UNWIND_CODE_ONES  0x0101010101010101ull
#define UNWIND_CODE_LOWS  0x7f7f7f7f7f7f7f7full
#define UNWIND_CODE_HIGHS 0x8080808080808080ull
/* The searched code, in whole words and as bits of bytes. */
#define UNWIND_CODE_WORDS    ((UNWIND_CODE_BACK + UNWIND_CODE_CUT + 7) / 8)
#define UNWIND_CODE_SEARCHED ((1ull << (UNWIND_CODE_BACK + UNWIND_CODE_CUT)) - 1)

/*
 * Returns 0 if the searched code has no push of the frame pointer and no return. It tests eight
 * bytes at a time: x - 1 borrows from bit 8 if a byte is 0.
 */
UNWIND_CODE_INLINE __u64 unwind_code_may_begin(const struct unwind_insn *i)
{
	__u64 found = 0;

	for (__u32 n = 0; n < UNWIND_CODE_WORDS; n++) {
		__u64 push = i->words[n] ^ 0x55 * UNWIND_CODE_ONES;
		__u64 ret = i->words[n] ^ 0xc3 * UNWIND_CODE_ONES;

		found |= ((push - UNWIND_CODE_ONES) & ~push) | ((ret - UNWIND_CODE_ONES) & ~ret);
	}
	return found & UNWIND_CODE_HIGHS;
}

/* Returns eight bits, one for each byte of `word`, the lowest first: 1 if the byte is 0. */
UNWIND_CODE_INLINE __u64 unwind_code_zeros(__u64 word)
{
	__u64 others = ((word & UNWIND_CODE_LOWS) + UNWIND_CODE_LOWS) | word;

	return ((~others & UNWIND_CODE_HIGHS) >> 7) * 0x0102040810204080ull >> 56;
}

/* One bit for each byte of the code at which a pattern ends. */
struct unwind_code_ends {
	__u64 set, room, left;
};

/*
 * Searches the code for all patterns, eight bytes at a time, without a branch: the verifier follows
 * it once.
 */
UNWIND_CODE_INLINE void unwind_code_ends(const struct unwind_insn *i, struct unwind_code_ends *ends)
{
	__u64 before = 0;

	ends->set = ends->room = ends->left = 0;
	for (__u32 n = 0; n < UNWIND_CODE_WORDS; n++) {
		/* The byte itself, and the one, two and three before it. */
		__u64 b0 = i->words[n], b1 = b0 << 8 | before >> 56, b2 = b0 << 16 | before >> 48;
		/* push %rbp, and the REX prefix of the next instruction. */
		__u64 push = ((b0 << 24 | before >> 40) ^ 0x55 * UNWIND_CODE_ONES) |
			     (b2 ^ 0x48 * UNWIND_CODE_ONES);
		__u64 sub = (b1 ^ 0x81 * UNWIND_CODE_ONES) & ~(0x02 * UNWIND_CODE_ONES);
		__u64 ends_ec = b0 ^ 0xec * UNWIND_CODE_ONES,
		      ends_e5 = b0 ^ 0xe5 * UNWIND_CODE_ONES;
		__u64 ret = b0 ^ 0xc3 * UNWIND_CODE_ONES;

		/* mov %rsp,%rbp, which has two encodings */
		ends->set |= (unwind_code_zeros(push | (b1 ^ 0x8b * UNWIND_CODE_ONES) | ends_ec) |
			      unwind_code_zeros(push | (b1 ^ 0x89 * UNWIND_CODE_ONES) | ends_e5))
			     << 8 * n;
		/* sub $..., %rsp, with one byte and with four */
		ends->room |= unwind_code_zeros(push | sub | ends_ec) << 8 * n;
		/* pop %rbp; ret, and leave; ret */
		ends->left |= (unwind_code_zeros(ret | (b1 ^ 0x5d * UNWIND_CODE_ONES)) |
			       unwind_code_zeros(ret | (b1 ^ 0xc9 * UNWIND_CODE_ONES)))
			      << 8 * n;
		before = b0;
	}
	ends->set &= UNWIND_CODE_SEARCHED;
	ends->room &= UNWIND_CODE_SEARCHED;
	ends->left &= UNWIND_CODE_SEARCHED;
}

/* Returns the index of the highest set bit plus 1; 0 if no bit is set. */
UNWIND_CODE_INLINE __u32 unwind_code_last(__u64 bits)
{
	for (__u32 n = 1; n < 64; n <<= 1)
		bits |= bits >> n;
	bits -= bits >> 1 & 0x55 * UNWIND_CODE_ONES;
	bits = (bits & 0x33 * UNWIND_CODE_ONES) + (bits >> 2 & 0x33 * UNWIND_CODE_ONES);
	bits = (bits + (bits >> 4)) & 0x0f * UNWIND_CODE_ONES;
	return (__u32)(bits * UNWIND_CODE_ONES >> 56);
}

/*
 * Returns the answer from the stack space that the function's begin reserves: the return address is
 * after it.
 */
UNWIND_CODE_INLINE enum unwind_code_answer unwind_code_begins(struct unwind_code *c)
{
	if (c->sets)
		return c->room == c->pointer && !c->lost ? UNWIND_CODE_BY_POINTER
							 : UNWIND_CODE_UNKNOWN;
	c->now.fp_is = UNWIND_CODE_FP_AT;
	c->now.fp = c->room;
	c->now.sp = c->room + UNWIND_WORD;
	c->insn.value = 0;
	return UNWIND_CODE_BY_STACK;
}

/* Returns the answer from the findings. */
UNWIND_CODE_INLINE enum unwind_code_answer unwind_code_decide(struct unwind_code *c)
{
	switch (c->found) {
	case UNWIND_CODE_POINTER:
		return UNWIND_CODE_BY_POINTER;
	case UNWIND_CODE_RETURN:
		return unwind_code_returns(c);
	case UNWIND_CODE_BEGIN:
		return unwind_code_begins(c);
	default:
		return UNWIND_CODE_UNKNOWN;
	}
}

/*
 * Searches the code that was read for the last instructions that begin a function: they save the
 * frame pointer, and set a new one or reserve stack space. Returns 1 if it has found them. An end
 * of a function on the way is recorded, because a function may have several.
 */
UNWIND_GLOBAL int unwind_code_search(struct unwind_code *c)
{
	struct unwind_code_ends ends;
	__u64 begins;
	__u32 end;

	if (!c)
		return 1;
	unwind_code_ends(&c->insn, &ends);
	begins = ends.set > ends.room ? ends.set : ends.room;
	c->ends |= ends.left > begins;
	if (!begins)
		return 0;
	c->sets = ends.set > ends.room;
	end = unwind_code_last(begins);
	c->room = unwind_code_room(&c->insn, c->sets ? end : end - 3);
	c->now.at += end - 4;
	return 1;
}

/* Searches the UNWIND_CODE_BACK bytes below c->now.at. Returns 1 if the search is over. */
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

/* Follows one instruction. */
static long unwind_code_insn(__u32 n, struct unwind_code_loop *loop)
{
	struct unwind_code *c = loop->code;
	__u32 effect = unwind_code_next(c);

	if (c->insn.based && c->now.fp_is == UNWIND_CODE_FP_OWN && !c->now.calls) {
		c->found = UNWIND_CODE_POINTER;
		return 1;
	}
	return unwind_code_apply(c, effect) & 1;
}

/* Returns whether the registers have the values that the begin gives the frame. */
UNWIND_CODE_INLINE __u32 unwind_code_agrees(const struct unwind_code *c)
{
	if (c->now.sp != -c->room - UNWIND_WORD)
		return 0;
	return !c->sets ||
	       (c->now.fp_is == UNWIND_CODE_FP_LEVEL && c->now.fp - c->now.sp == c->room);
}

/* Sets the registers to their values after the function has made its frame. */
UNWIND_CODE_INLINE void unwind_code_settle(struct unwind_code *c)
{
	c->now.sp = -c->room - UNWIND_WORD;
	c->now.fp_is = UNWIND_CODE_FP_LEVEL;
	c->now.fp = c->now.sp + c->room;
}

/*
 * Continues after an end of the function, at the furthest target of a branch that was taken with
 * its frame: the function extends at least that far. Returns 1 if there is no such target. The code
 * before the target is not followed; a frame there is proved by its frame pointer.
 */
UNWIND_CODE_INLINE long unwind_code_pass_end(struct unwind_code *c)
{
	if (c->reach <= c->now.at)
		return 1;
	if (c->reach > c->frame_at) {
		c->proved = c->sets;
		return 1;
	}
	c->now.at = c->reach;
	unwind_code_settle(c);
	return 0;
}

/*
 * Follows a branch or a jump on the way up. After a jump the registers have the values of a branch
 * to that place: of the last one that was taken with more on the stack, or of any other.
 */
UNWIND_CODE_INLINE long unwind_code_up_jump(struct unwind_code *c, __u32 effect)
{
	__u64 to = c->now.at + (__u64)c->insn.value;
	__u32 near = to >= c->begin && to <= c->frame_at + UNWIND_CODE_PAGE;

	if (near && !unwind_code_agrees(c)) {
		c->odd_at = to;
		c->odd_sp = c->now.sp;
	} else if (near && to > c->reach) {
		c->reach = to;
	}
	if (effect == UNWIND_INSN_BRANCH)
		return 0;
	/* A near jump that is taken with the frame leads to a part of the function. */
	if (!near || c->now.sp >= -UNWIND_WORD)
		return unwind_code_pass_end(c);
	unwind_code_settle(c);
	if (c->odd_at == c->now.at)
		c->now.sp = c->odd_sp;
	return 0;
}

/*
 * Follows one instruction on the way from the begin to the frame. If no function ends between them,
 * both are in one function. Levels count from the return address here.
 */
static long unwind_code_up(__u32 n, struct unwind_code_loop *loop)
{
	struct unwind_code *c = loop->code;
	__u32 effect;

	if (c->now.at >= c->frame_at) {
		c->proved = c->now.at == c->frame_at && unwind_code_agrees(c);
		return 1;
	}
	effect = unwind_code_next(c);
	if (effect == UNWIND_INSN_JUMP || effect == UNWIND_INSN_BRANCH)
		return unwind_code_up_jump(c, effect);
	if (effect == UNWIND_INSN_RETURN || effect == UNWIND_INSN_END ||
	    effect == UNWIND_INSN_LEAVE || effect == UNWIND_INSN_SP_FROM_FP)
		return unwind_code_pass_end(c);
	return unwind_code_apply(c, effect) & 1;
}

/*
 * Searches forward for the function's use of its frame, and in generated code then backward for its
 * begin. Returns the answer.
 */
UNWIND_CODE_INLINE enum unwind_code_answer unwind_code_find(struct unwind_code *c)
{
	struct unwind_code_loop loop = { .code = c };
	enum unwind_code_answer answer;

	bpf_loop(c->left < UNWIND_CODE_INSNS ? c->left : UNWIND_CODE_INSNS, unwind_code_insn, &loop,
		 0);
	answer = unwind_code_decide(c);
	if (answer != UNWIND_CODE_UNKNOWN || !c->made ||
	    c->frame_at - c->start <= UNWIND_CODE_BACK + UNWIND_CODE_CUT)
		return answer;
	c->now.at = c->frame_at - UNWIND_CODE_CUT;
	bpf_loop(UNWIND_CODE_BACKS, unwind_code_back, &loop, 0);
	if (c->room <= 0)
		return UNWIND_CODE_UNKNOWN;
	c->found = UNWIND_CODE_BEGIN;
	c->proved = 0;
	c->begin = c->now.at;
	c->reach = c->odd_at = 0;
	unwind_code_start(c, c->begin);
	bpf_loop(c->left, unwind_code_up, &loop, 0);
	if (c->ends && !c->proved)
		c->found = UNWIND_CODE_NOTHING;
	return unwind_code_decide(c);
}

/* Loads the earlier findings of this frame from the cache. Returns 0 if the cache has none. */
UNWIND_CODE_INLINE __u32 unwind_code_recall(struct unwind_code *c, const struct unwind_kept *kept)
{
	if (kept->range != c->key || kept->pc != c->known_as || kept->sum != c->sum)
		return 0;
	c->now.sp = kept->sp;
	c->now.fp = kept->fp;
	c->now.fp_is = kept->fp_is;
	c->room = kept->room;
	c->insn.value = kept->taken;
	c->found = kept->found & UNWIND_KEPT_FOUND;
	c->proved = kept->found & UNWIND_KEPT_PROVED ? 1 : 0;
	c->sets = kept->found & UNWIND_KEPT_SETS ? 1 : 0;
	c->straight = kept->found & UNWIND_KEPT_STRAIGHT ? 1 : 0;
	return 1;
}

/*
 * Returns 1 if the cache shows that the frame pointer of the leaf is its function's own, and the
 * finding is for a file. Most leaves have this answer, and it saves the rest of a search.
 */
UNWIND_CODE_INLINE __u32 unwind_code_owns(const struct unwind_frame *f,
					  struct unwind_code_cache *cache, __u64 key)
{
	const struct unwind_kept *kept = unwind_kept_leaf(cache, f->pc);

	__s64 pointer = (__s64)(f->fp - f->sp);

	if (kept->range != key || kept->pc != (f->pc | UNWIND_CACHED_EXACT) || kept->sum ||
	    !(kept->found & UNWIND_KEPT_PROVED))
		return 0;
	if ((kept->found & UNWIND_KEPT_FOUND) == UNWIND_CODE_POINTER)
		return 1;
	return (kept->found & UNWIND_KEPT_FOUND) == UNWIND_CODE_RETURN &&
	       kept->fp_is == UNWIND_CODE_FP_AT && kept->fp == pointer &&
	       kept->sp == pointer + UNWIND_WORD;
}

/* Stores the findings in the cache, unless a level has too many bits. */
UNWIND_CODE_INLINE void unwind_code_keep(const struct unwind_code *c, struct unwind_kept *kept)
{
	__u8 found = (__u8)c->found;

	if (c->now.sp != (__s32)c->now.sp || c->now.fp != (__s32)c->now.fp ||
	    c->room != (__s32)c->room)
		return;
	if (c->proved)
		found |= UNWIND_KEPT_PROVED;
	if (c->sets)
		found |= UNWIND_KEPT_SETS;
	if (c->straight)
		found |= UNWIND_KEPT_STRAIGHT;
	kept->range = c->key;
	kept->pc = c->known_as;
	kept->sum = c->sum;
	kept->sp = (__s32)c->now.sp;
	kept->fp = (__s32)c->now.fp;
	kept->room = (__s32)c->room;
	kept->taken = (__u16)c->insn.value;
	kept->fp_is = (__u8)c->now.fp_is;
	kept->found = found;
}

/* Sets the initial state at the frame. */
UNWIND_CODE_INLINE void unwind_code_begin(struct unwind_code *c, const struct unwind_frame *f)
{
	unwind_code_start(c, f->pc);
	if (f->fp_lost)
		c->now.fp_is = UNWIND_CODE_FP_LOST;
	c->back.at = c->branch.at = 0;
	c->jumps = c->jumps_back = c->branches = c->aside = 0;
	c->pointer = (__s64)(f->fp - f->sp);
	c->frame_at = f->pc;
	c->known_as = f->pc | (f->exact ? UNWIND_CACHED_EXACT : 0);
	c->leaf = f->exact;
	c->lost = f->fp_lost;
	c->proved = 1;
	c->found = UNWIND_CODE_NOTHING;
	c->room = 0;
	c->sets = c->straight = c->ends = 0;
	c->insn.value = 0;
}

/*
 * Computes the checksum of the code at the frame. Code of a file is not read: the walk has compared
 * the file with that of the table. Returns -1 if the code cannot be read.
 */
UNWIND_CODE_INLINE long unwind_code_sum(struct unwind_code *c)
{
	c->sum = 0;
	if (!c->made)
		return 0;
	if (unwind_code_fill(c) != 0 || c->valid != sizeof(c->insn.code))
		return -1;
	c->sum = unwind_kept_sum(c->insn.words, UNWIND_INSN_BYTES / sizeof(__u64));
	return 0;
}

/*
 * Follows the function of `f`, with its code in `range` (struct unwind_ranges), and subtracts the
 * followed instructions from c->left. Findings in `cache` are not searched again; `key` is the
 * UNWIND_CACHED_RANGE of the frame. Each walk finds at least one caller: a leaf may take half of
 * the instructions, and a failed search with the other half is cached too. Returns enum
 * unwind_code_answer. Without a cache (NULL) each frame is searched.
 */
UNWIND_GLOBAL int unwind_code_follow(struct unwind_code *c, const struct unwind_frame *f,
				     __u64 range, struct unwind_code_cache *cache, __u64 key)
{
	struct unwind_kept *kept = 0;
	int answer;

	if (!UNWIND_CODE_DECODES || !c || !f)
		return UNWIND_CODE_UNKNOWN;
	c->start = UNWIND_RANGE_PAGE(range) << UNWIND_RANGE_SHIFT;
	c->end = c->start + (UNWIND_RANGE_PAGES(range) << UNWIND_RANGE_SHIFT);
	c->key = key;
	unwind_code_begin(c, f);
	if (cache && !f->fp_lost && unwind_code_sum(c) == 0) {
		kept = f->exact ? unwind_kept_leaf(cache, f->pc)
				: unwind_kept_caller(cache, c->place);
		if (unwind_code_recall(c, kept))
			return (int)unwind_code_decide(c);
	}
	c->others = f->exact ? c->left / 2 : 0;
	c->left -= c->others;
	c->given = c->left;
	answer = (int)unwind_code_find(c);
	if (kept && (c->left || c->given >= UNWIND_CODE_ALL / 2))
		unwind_code_keep(c, kept);
	c->left += c->others;
	return answer;
}

#endif
