/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_walk.h: walks a user stack by the table of its process: finds the mapping that contains an
 * address, and takes the step that is correct there. Of the two halves of a table only struct
 * unwind_ranges is trusted: the programs fill it themselves, and only frames inside its ranges
 * leave the kernel. The half that the consumer writes (struct unwind_process and everything that it
 * refers to) decides which words of the stack are read, and so which addresses of the process's
 * code are sampled. A word that is an address neither of this stack nor of code changes neither the
 * frames nor the stop reason, for any table: all ends that depend on a word that was read have one
 * stop reason.
 *
 * Each range is compared with the kernel's own mapping before its rows are used. If the mapping
 * covers the whole range, this proves every frame in it. If the mapping has been split, it proves
 * only its own frame: a page of the range may belong to another file, and a part that mprotect(2)
 * has split off does not.
 *
 * It also compiles for the host, like unwind.h; the includer then also defines unwind_file_at and
 * mapped_file_find.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_WALK_H
#define TROCAR_BPF_UNWIND_UNWIND_WALK_H

#include "bpf/unwind/call_bytes.h"
#include "bpf/unwind/unwind.h"
#include "bpf/unwind/unwind_cache.h"
#include "bpf/unwind/unwind_code.h"
#ifndef UNWIND_HOST
#include "bpf/mappings/mapped_file_find.h"
#endif

#define UNWIND_INLINE static __attribute__((always_inline)) inline

/*
 * A walk in progress. The frame is in one of the ranges, or it is where the task left user mode.
 * The members that each step needs are first, in two cache lines, and at offsets that instructions
 * encode in a byte.
 */
struct unwind_walk {
	__u32 last;	  /* the last range found: most frames are in it */
	__u32 by_pointer; /* the last step used the frame pointer, from the code or the table */
	enum unwind_end stop_reason;
	__u32 place;	/* of the previous frame, in the cache */
	__u32 checked;	/* index of the last checked range, plus 1 */
	__u32 steps;	/* 0: the frame is where the task left user mode */
	__u32 in_call;	/* the task most likely left user mode by a call: it returns there */
	__u32 process;	/* its place in the cache: unwind_cache_begin */
	__u32 adjacent; /* the last step used the frame pointer, and cannot have missed a frame */
	__u32 searched; /* words searched by unwind_walk_is_adjacent */
	__u64 table_generation;	 /* of the ranges that the walk uses */
	struct unwind_rule rule; /* of the current frame */
	struct unwind_frame frame;
	__u64 mm; /* address of the struct mm_struct of the stack */
	struct mapped_file_found found;
	__u64 gap_at;	 /* current address of unwind_walk_is_adjacent */
	__u64 gap_end;	 /* there is no code between the stack pointer and this address */
	__u32 gap_clean; /* no return address was found below gap_at */
	__u32 pad;
	struct unwind_code code;
};

/*
 * Begins a walk at w->frame, with registers and bounds set by the caller. `mm` is the address of
 * the struct mm_struct of the stack.
 */
UNWIND_INLINE void unwind_walk_begin(struct unwind_walk *w, __u64 mm)
{
	unwind_begin(&w->frame);
	w->last = 0;
	w->steps = 0;
	w->checked = 0;
	w->mm = mm;
	w->by_pointer = 0;
	w->searched = 0;
	w->code.left = UNWIND_CODE_ALL;
	w->stop_reason = UNWIND_END_NONE;
}

UNWIND_INLINE __u32 unwind_range_holds(__u64 range, __u64 pc)
{
	return (pc >> UNWIND_RANGE_SHIFT) - UNWIND_RANGE_PAGE(range) < UNWIND_RANGE_PAGES(range);
}

/*
 * Returns the index of the last of `count` ranges that begins at or below `page`; 0 also for none.
 * The search has no branch on the words that it reads, like unwind_search. It loads each word anew,
 * because the table may be written at any time.
 */
UNWIND_INLINE __u32 unwind_find_row(const volatile __u64 *ranges, __u32 count, __u64 page)
{
	__u32 row = 0, left = count;

	for (int i = 0; i < UNWIND_RANGE_STEPS; i++) {
		__u32 half = left >> 1;
		__u64 reached =
			~(page - UNWIND_RANGE_PAGE(ranges[(row + half) & (UNWIND_RANGES - 1)])) >>
			63;

		asm volatile("" : "+r"(reached));
		row += half & -(__u32)reached;
		left -= half;
	}
	return row;
}

UNWIND_INLINE __u32 unwind_range_count(const struct unwind_ranges *r)
{
	return *(const volatile __u32 *)&r->count & (2 * UNWIND_RANGES - 1);
}

/* Returns the index of the range that contains `pc`, or UNWIND_RANGES. */
UNWIND_INLINE __u32 unwind_find_range(const struct unwind_ranges *r, __u32 last, __u64 pc)
{
	const volatile __u64 *ranges = r->ranges;
	__u32 count = unwind_range_count(r), row;

	if (last < count && unwind_range_holds(ranges[last & (UNWIND_RANGES - 1)], pc))
		return last;
	row = unwind_find_row(ranges, count, pc >> UNWIND_RANGE_SHIFT);
	if (row >= count)
		return UNWIND_RANGES;
	return unwind_range_holds(ranges[row & (UNWIND_RANGES - 1)], pc) ? row : UNWIND_RANGES;
}

/* Returns the rule for w->frame, which is in range `number`. */
UNWIND_INLINE struct unwind_rule unwind_walk_rule(const struct unwind_walk *w,
						  const struct unwind_process *p, __u32 number)
{
	const struct unwind_mapping *m = &p->mappings[number & (UNWIND_RANGES - 1)];
	__u32 kind = *(const volatile __u32 *)&m->kind;
	struct unwind_rule rule = { .cfa = UNWIND_CFA_NONE };
	const struct unwind_file *file;

	if (kind == UNWIND_KIND_FP)
		rule.cfa = UNWIND_CFA_POINTER;
	if (kind != UNWIND_KIND_ROWS && kind != UNWIND_KIND_ROWS_ALONE)
		return rule;
	file = unwind_file_at(*(const volatile __u32 *)&m->file);
	if (!file)
		return rule;
	rule = unwind_rule_of(&w->frame, &file->place, *(const volatile __u64 *)&m->base);
	if (rule.cfa == UNWIND_CFA_NONE && kind == UNWIND_KIND_ROWS)
		rule.cfa = UNWIND_CFA_POINTER;
	return rule;
}

/*
 * Returns 1 if `pc` may be a return address: a call is before it. Generated code may push an
 * address and jump, as Java's interpreter does, so there each address is accepted.
 */
UNWIND_INLINE __u32 unwind_is_return(const struct unwind_ranges *r, __u32 last, __u64 pc)
{
	__u64 before;
	__u32 number = unwind_find_range(r, last, pc - sizeof(before));

	return number < UNWIND_RANGES &&
	       (*(const volatile __u64 *)&r->checks[number & (UNWIND_RANGES - 1)] == 0 ||
		unwind_read(&before, sizeof(before), pc - sizeof(before)) != 0 || is_call(before));
}

/*
 * A search for return addresses between a frame and the target of its frame pointer. It is small
 * because it is on the BPF stack, below eight calls (Linux 6.1 allows 512 bytes for all).
 */
struct unwind_gap {
	struct unwind_walk *walk;
	const struct unwind_ranges *ranges;
};

/*
 * Returns the highest address up to which there is no range above the stack pointer, at most the
 * end of the stack. That end may be known only as the maximum size of a stack, and libraries may be
 * mapped below it.
 */
UNWIND_INLINE __u64 unwind_gap_end(const struct unwind_frame *f, const struct unwind_ranges *r)
{
	const volatile __u64 *ranges = r->ranges;
	__u32 count = unwind_range_count(r);
	__u64 page = f->sp >> UNWIND_RANGE_SHIFT, end = f->top;
	__u32 row = unwind_find_row(ranges, count, page);

	/* The range that begins at or below the stack pointer, if any, and the next one. */
	for (__u32 i = 0; i < 2; i++) {
		__u64 range = ranges[(row + i) & (UNWIND_RANGES - 1)];
		__u64 start = UNWIND_RANGE_PAGE(range) << UNWIND_RANGE_SHIFT;

		if (row + i >= count)
			break;
		if (unwind_range_holds(range, f->sp))
			return f->sp;
		if (start > f->sp && start < end)
			end = start;
	}
	return end;
}

/* Returns whether the word cannot be code: it is below all ranges, or an address of this stack. */
UNWIND_INLINE __u32 unwind_gap_is_data(const struct unwind_gap *gap, __u64 word)
{
	__u64 lowest = UNWIND_RANGE_PAGE(*(const volatile __u64 *)&gap->ranges->ranges[0]);

	return word >> UNWIND_RANGE_SHIFT < lowest ||
	       word - gap->walk->frame.sp < gap->walk->gap_end - gap->walk->frame.sp;
}

/* Checks one word. Returns 1 at the end of the gap, and if the word is a return address. */
static long unwind_gap_word(__u32 i, struct unwind_gap *gap)
{
	struct unwind_walk *w = gap->walk;
	__u64 word;

	if (w->gap_at >= w->frame.fp)
		return 1;
	w->searched++;
	w->gap_clean = 0;
	if (unwind_stack_word(&w->frame.stack, w->gap_at, &word) != 0)
		return 1;
	if (!unwind_gap_is_data(gap, word) &&
	    unwind_is_return(gap->ranges, w->last, UNWIND_CODE(word)))
		return 1;
	w->gap_clean = 1;
	w->gap_at += UNWIND_WORD;
	return 0;
}

/*
 * Returns 1 if there can be no frame between w->frame and the one that its frame pointer leads to.
 * A call pushes its return address, so a frame without a frame pointer has left one there. An old
 * return address that a function has not overwritten looks the same: then the result is 0 too, and
 * the step needs another proof. The search finds only addresses of code, which a walk may report
 * anyway: no other word makes a difference. On arm64 a leaf's return address is in a register.
 */
UNWIND_GLOBAL int unwind_walk_is_adjacent(struct unwind_walk *w, const struct unwind_ranges *r)
{
	struct unwind_gap gap = { .walk = w, .ranges = r };
	__u64 words;

	if (!w || !r || w->frame.fp_lost || w->frame.fp < w->frame.sp ||
	    w->searched >= UNWIND_GAP_WORDS)
		return 0;
#if defined(__TARGET_ARCH_arm64)
	if (w->frame.exact)
		return 0;
#endif
	words = (w->frame.fp - w->frame.sp) / UNWIND_WORD;
	if (words > UNWIND_GAP_WORDS - w->searched)
		return 0;
	w->gap_at = w->frame.sp;
	w->gap_clean = 1;
	w->gap_end = unwind_gap_end(&w->frame, r);
	bpf_loop((__u32)words + 1, unwind_gap_word, &gap, 0);
	return w->gap_clean && w->gap_at >= w->frame.fp;
}

/* Steps w->frame to its caller by any rule. */
UNWIND_APART enum unwind_end unwind_walk_step_any(struct unwind_walk *w)
{
	struct unwind_rule rule = w->rule;

	w->by_pointer = rule.cfa >= UNWIND_CFA_POINTER_ONLY;
	return w->by_pointer ? unwind_step_fp(&w->frame) : unwind_apply(&w->frame, &rule);
}

/*
 * Steps w->frame to its caller by the findings of unwind_code_follow about the stack. Returns 0, or
 * -1, with nothing changed, if there is no return address.
 */
UNWIND_APART long unwind_walk_step_code(struct unwind_walk *w, const struct unwind_ranges *r)
{
	struct unwind_frame *f = &w->frame;
	__u64 at = f->sp + (__u64)w->code.now.sp, fp = f->fp, pc;
	__u64 sp = at + UNWIND_WORD + (__u64)w->code.insn.value;

	if (unwind_read_saved(f, at, f->top, &pc) != 0 || !unwind_on_stack(f, sp) ||
	    !unwind_is_return(r, w->last, pc))
		return -1;
	if (w->code.now.fp_is == UNWIND_CODE_FP_AT &&
	    unwind_read_saved(f, f->sp + (__u64)w->code.now.fp, at, &fp) != 0)
		return -1;
	unwind_enter(f, pc, sp, fp);
	f->fp_lost = w->code.now.fp_is == UNWIND_CODE_FP_LOST;
	return 0;
}

/* Sets *rule from a return of the function, unless its numbers have too many bits. */
UNWIND_INLINE __u32 unwind_walk_learn_return(const struct unwind_code *c, struct unwind_rule *rule)
{
	const struct unwind_code_state *now = &c->now;
	__s64 cfa = now->sp + UNWIND_WORD, fp = now->fp - cfa;
	__u32 saved = now->fp_is == UNWIND_CODE_FP_AT;

	if (!c->straight || c->insn.value || cfa != (__s32)cfa || now->fp_is > UNWIND_CODE_FP_AT ||
	    now->fp_is == UNWIND_CODE_FP_LEVEL || (saved && fp != (__s16)fp))
		return 0;
	rule->cfa = UNWIND_CFA_SP;
	rule->cfa_offset = (__s32)cfa;
	rule->fp_offset = saved ? (__s16)fp : 0;
	rule->saved = UNWIND_SAVED(UNWIND_RA_CFA, saved ? UNWIND_FP_CFA : UNWIND_FP_SAME);
	return 1;
}

/*
 * Stores a return address that the code of a file has shown in the cache, as if its table had it.
 * It also stores that the code shows nothing, whatever the registers point to.
 */
UNWIND_APART void unwind_walk_learn(struct unwind_walk *w, struct unwind_cache *cache,
				    __u32 unknown)
{
	struct unwind_cached *entry = &cache->entries[w->place & (UNWIND_CACHE_ENTRIES - 1)];
	const struct unwind_code *c = &w->code;
	__u32 returns = c->found == UNWIND_CODE_RETURN;
	struct unwind_rule rule = { .cfa = UNWIND_CFA_POINTER_OWN,
				    .cfa_offset = 2 * UNWIND_WORD,
				    .fp_offset = -2 * UNWIND_WORD,
				    .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA) };

	if (w->frame.exact || w->frame.fp_lost || c->made || entry->pc != w->frame.pc || !c->left)
		return;
	if (unknown) {
		if (returns && (c->straight || c->now.fp_is == UNWIND_CODE_FP_AT))
			return;
		rule.cfa = UNWIND_CFA_POINTER_ONLY;
	} else if (returns ? !unwind_walk_learn_return(c, &rule)
			   : c->found != UNWIND_CODE_POINTER) {
		return;
	}
	entry->rule = rule;
}

/*
 * Steps w->frame to its caller by its code, or by the frame pointer: then w->adjacent is set if
 * that step cannot have missed a frame. The caches may be NULL.
 */
UNWIND_INLINE enum unwind_end unwind_walk_step_pointer(struct unwind_walk *w,
						       const struct unwind_ranges *r,
						       struct unwind_cache *cache,
						       struct unwind_code_cache *kept)
{
	__u32 number = w->last & (UNWIND_RANGES - 1);
	__u64 key = UNWIND_CACHED_RANGE(w->table_generation, number);
	int answer;

	if (kept && w->frame.exact && !w->frame.fp_lost && unwind_code_owns(&w->frame, kept, key))
		return unwind_walk_step_any(w);
	if (w->rule.cfa == UNWIND_CFA_POINTER_ONLY && !w->frame.fp_lost) {
		w->adjacent = unwind_walk_is_adjacent(w, r);
		return unwind_walk_step_any(w);
	}
	w->code.made = *(const volatile __u64 *)&r->checks[number] == 0;
	w->code.place = w->place;
	answer = unwind_code_follow(&w->code, &w->frame,
				    *(const volatile __u64 *)&r->ranges[number], kept, key);
	if (cache)
		unwind_walk_learn(w, cache, answer == UNWIND_CODE_UNKNOWN);
	if (answer == UNWIND_CODE_BY_STACK && unwind_walk_step_code(w, r) == 0) {
		w->by_pointer = 1;
		w->adjacent = w->code.proved;
		return UNWIND_END_NONE;
	}
	w->adjacent = (answer == UNWIND_CODE_BY_POINTER && w->code.proved) ||
		      unwind_walk_is_adjacent(w, r);
	return unwind_walk_step_any(w);
}

/* Steps w->frame to its caller by w->rule. The caches may be NULL. */
UNWIND_INLINE enum unwind_end unwind_walk_step(struct unwind_walk *w, const struct unwind_ranges *r,
					       struct unwind_cache *cache,
					       struct unwind_code_cache *kept)
{
	struct unwind_rule rule = w->rule;

	w->steps++;
	w->by_pointer = rule.cfa == UNWIND_CFA_POINTER_OWN;
	w->adjacent = 1;
	if (unwind_apply_plain(&w->frame, &rule))
		return UNWIND_END_NONE;
	/*
	 * Called directly, not through another function, because BPF programs share 512 bytes of
	 * stack.
	 */
	if (rule.cfa == UNWIND_CFA_POINTER || rule.cfa == UNWIND_CFA_POINTER_ONLY)
		return unwind_walk_step_pointer(w, r, cache, kept);
	return unwind_walk_step_any(w);
}

enum unwind_check {
	UNWIND_CHECK_CHANGED,
	UNWIND_CHECK_PART, /* unchanged at the frame; the range has been split since */
	UNWIND_CHECK_WHOLE,
};

/*
 * Compares the mapping at w->frame with that of range `number` when the table was filled: it may be
 * another file, or another part of that file. A mapping that is not found proves no change: the
 * tree of mappings may be changing at this moment, even on this CPU.
 */
UNWIND_APART enum unwind_check unwind_walk_check_range(struct unwind_walk *w,
						       const struct unwind_ranges *r, __u32 number)
{
	__u64 range = *(const volatile __u64 *)&r->ranges[number & (UNWIND_RANGES - 1)];
	__u64 check = *(const volatile __u64 *)&r->checks[number & (UNWIND_RANGES - 1)];
	__u64 start = UNWIND_RANGE_PAGE(range) << UNWIND_RANGE_SHIFT;
	__u64 end = start + (UNWIND_RANGE_PAGES(range) << UNWIND_RANGE_SHIFT);

	if (!mapped_file_find(w->mm, w->frame.pc, &w->found))
		return UNWIND_CHECK_PART;
	if (w->found.number != check)
		return UNWIND_CHECK_CHANGED;
	return w->found.start <= start && w->found.end >= end ? UNWIND_CHECK_WHOLE
							      : UNWIND_CHECK_PART;
}

/*
 * Returns 1 unless the range of w->frame has changed. Uses the result of an earlier check in this
 * walk or, if the cache has it, of an earlier walk.
 */
UNWIND_INLINE __u32 unwind_walk_is_unchanged(struct unwind_walk *w, const struct unwind_ranges *r,
					     struct unwind_cache *cache)
{
	__u32 number = w->last;
	__u64 bit = 1ull << number % 64;
	enum unwind_check check;

	if (w->checked == number + 1)
		return 1;
	if (!cache || !(*unwind_cache_checks(cache, w->process, number) & bit)) {
		check = unwind_walk_check_range(w, r, number);
		if (check != UNWIND_CHECK_WHOLE)
			return check == UNWIND_CHECK_PART;
		if (cache)
			*unwind_cache_checks(cache, w->process, number) |= bit;
	}
	w->checked = number + 1;
	return 1;
}

/* Returns the key of w->frame in the cache; 0: it is not cached. */
UNWIND_INLINE __u64 unwind_walk_key(const struct unwind_walk *w)
{
	if (!w->frame.exact)
		return w->frame.pc;
	return w->in_call && !w->steps ? w->frame.pc | UNWIND_CACHED_EXACT : 0;
}

/*
 * Searches for the range and the rule of w->frame, and stores them in the cache if `key` is not 0
 * (unwind_walk_key). Returns 0 if the frame is in no range.
 */
UNWIND_GLOBAL int unwind_walk_search(struct unwind_walk *w, const struct unwind_ranges *r,
				     const struct unwind_process *p, struct unwind_cache *cache,
				     __u64 key)
{
	if (!w || !r || !p)
		return 0;
	w->last = unwind_find_range(r, w->last, w->frame.pc);
	if (w->last >= UNWIND_RANGES)
		return 0;
	w->rule = unwind_walk_rule(w, p, w->last);
	if (cache && key)
		unwind_cache_add(
			cache,
			(struct unwind_cached){ UNWIND_CACHED_RANGE(w->table_generation, w->last),
						key, w->rule },
			&w->place);
	return 1;
}

/*
 * Finds the range and the rule of w->frame. Returns 0 if it is in no range. A leaf is cached only
 * if a call left user mode: any other leaf is seldom at the place of the last one. Without a cache
 * (NULL) each frame is searched.
 */
UNWIND_INLINE __u32 unwind_walk_find_rule(struct unwind_walk *w, const struct unwind_ranges *r,
					  const struct unwind_process *p,
					  struct unwind_cache *cache)
{
	__u64 key = cache ? unwind_walk_key(w) : 0;

	if (key &&
	    unwind_cache_find(cache, w->table_generation, key, &w->place, &w->last, &w->rule))
		return 1;
	return unwind_walk_search(w, r, p, cache, key);
}

/*
 * Returns 1 if w->frame is a frame of the stack, and has then stepped w->frame to its caller or set
 * w->stop_reason. Returns 0, with w->stop_reason set, if the frame is in no range or in one with a
 * changed file. The caches may be NULL.
 */
UNWIND_INLINE __u32 unwind_walk_advance(struct unwind_walk *w, const struct unwind_ranges *r,
					const struct unwind_process *p, struct unwind_cache *cache,
					struct unwind_code_cache *kept)
{
	if (!unwind_walk_find_rule(w, r, p, cache)) {
		w->stop_reason = w->steps ? UNWIND_END_NO_CALLER : UNWIND_END_NO_MAPPING;
		return 0;
	}
	if (!unwind_walk_is_unchanged(w, r, cache)) {
		w->stop_reason = UNWIND_END_CHANGED;
		return 0;
	}
	w->stop_reason = unwind_walk_step(w, r, cache, kept);
	return 1;
}

#endif
