/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * python_walk.h: walks the frames of a thread in CPython 3.7 to 3.13, from the thread's own state.
 * Every pointer is the process's data and may be anything: each read may fail, each loop has a
 * limit, and a frame counts only if it leads to a code object (runtime_names.h). Only the number of
 * the code object leaves, and the place of the instruction within it.
 */
#ifndef TROCAR_BPF_RUNTIMES_PYTHON_WALK_H
#define TROCAR_BPF_RUNTIMES_PYTHON_WALK_H

#include "bpf/runtimes/runtime_names.h"

/*
 * glibc keeps the values of the first 32 keys of a thread in its struct pthread, which the thread
 * pointer points at: 16 bytes each, the value in the second half (nptl/descr.h).
 */
#define PTHREAD_KEYS	 32
#define PTHREAD_KEY_ROOM 0x310

#define PYTHON_THREADS	  64 /* thread states that are searched without such a key */
#define PYTHON_NEXT	  8  /* of a thread state: the next one */
#define PYTHON_OWNED_BY_C 3  /* a frame of the evaluation loop's function, with no code */

static __always_inline __u64 frame_word(const struct runtime_walk *w, __u32 offset)
{
	return w->frame_words[offset / 8 & 15];
}

static __always_inline __u8 frame_byte(const struct runtime_walk *w, __u32 offset)
{
	return ((const __u8 *)w->frame_words)[offset & 127];
}

static __always_inline long read_word(__u64 address, __u64 *ret_word)
{
	return runtime_read(ret_word, sizeof(*ret_word), address);
}

/* Returns whether `state` is the state of the walked thread, by its own member. */
static __always_inline bool is_own_state(const struct runtime_walk *w, __u64 state)
{
	__u64 thread = 0;

	return state && !read_word(state + runtime_layout(w)->thread, &thread) &&
	       thread == w->thread;
}

/* Compares one thread state of the list, and goes on to the next. */
static long search_state(__u32 i, void *context)
{
	struct runtime_walk *w = *(struct runtime_walk **)context;
	__u64 state = w->state;

	if (!state || is_own_state(w, state))
		return 1;
	if (read_word(state + PYTHON_NEXT, &w->state))
		w->state = 0;
	return 0;
}

/*
 * Sets w->state to the state of the walked thread; 0: it has none. By glibc's key first; a C
 * library that keeps it elsewhere leads to a search of the first interpreter's threads.
 */
static __always_inline void find_state(struct runtime_walk *w)
{
	const volatile struct python_layout *l = runtime_layout(w);
	__u64 state = w->facts.values[RUNTIME_SYMBOL_STATE], at = 0, key = 0;

	w->state = 0;
	if (!runtime_read(&key, sizeof(__u32), state + l->key) && key < PTHREAD_KEYS &&
	    !read_word(w->thread + PTHREAD_KEY_ROOM + 16 * key + 8, &at) && is_own_state(w, at)) {
		w->state = at;
		return;
	}
	if (read_word(state + l->interpreters, &at) || !at || read_word(at + l->threads, &w->state))
		return;
	bpf_loop(PYTHON_THREADS, search_state, &w, 0);
	if (!is_own_state(w, w->state))
		w->state = 0;
}

static __always_inline long end_walk(struct runtime_walk *w, __u32 end)
{
	w->end = end;
	return 1;
}

/* Marks the frame added last: the function of the evaluation loop returns after it. */
static __always_inline void end_run(struct runtime_walk *w)
{
	__u32 last = w->count - 1;

	if (last < RUNTIME_FRAMES_MAX)
		w->words[last] |= RUNTIME_RUN_ENDS;
}

/* Returns the instruction of the frame, as RUNTIME_WORD has it. */
static __always_inline __u32 find_instruction(const struct runtime_walk *w, __u64 code)
{
	const volatile struct python_layout *l = runtime_layout(w);
	__u64 at = frame_word(w, l->at);
	__s64 offset;

	if (l->unit)
		offset = (__s64)(__s32)(__u32)at * l->unit;
	else
		offset = (__s64)(at - code - l->body);
	if (offset < -2)
		offset = -2;
	if (offset > (__s64)RUNTIME_INSTRUCTION_MAX - 3)
		return RUNTIME_INSTRUCTION_MAX;
	return (__u32)(offset + 2);
}

/* Examines w->frame, and goes on to its caller. */
static long python_step(__u32 i, void *context)
{
	struct python_context {
		struct runtime_walk *w;
		__u64 table;
	} *x = context;
	struct runtime_walk *w = x->w;
	const volatile struct python_layout *l = runtime_layout(w);
	__u32 at = w->count, number, bytes = l->frame_bytes;
	__u64 code;

	if (!w->frame)
		return end_walk(w, RUNTIME_END_BASE);
	if (at >= RUNTIME_FRAMES_MAX)
		return end_walk(w, RUNTIME_END_DEPTH);
	if (bytes > RUNTIME_FRAME_BYTES || runtime_read(w->frame_words, bytes, w->frame))
		return end_walk(w, RUNTIME_END_TORN);
	w->frame = frame_word(w, l->previous);
	if (l->owner && frame_byte(w, l->owner) >= PYTHON_OWNED_BY_C) {
		end_run(w);
		return 0;
	}
	if (!l->owner && frame_word(w, 8) != w->facts.values[RUNTIME_SYMBOL_FRAME])
		return end_walk(w, RUNTIME_END_TORN);
	code = frame_word(w, l->code);
	if (runtime_read(w->code_words, RUNTIME_CODE_BYTES, code) ||
	    w->code_words[1] != w->facts.values[RUNTIME_SYMBOL_CODE])
		/* Only the innermost frame can be half made. */
		return i ? end_walk(w, RUNTIME_END_TORN) : 0;
	number = RUNTIME_NAMED(runtime_number)(code, x->table);
	w->words[at & (RUNTIME_FRAMES_MAX - 1)] =
		RUNTIME_WORD(number, find_instruction(w, code), 0);
	w->count = at + 1;
	if (!l->owner || (l->entry && frame_byte(w, l->entry)))
		end_run(w);
	return 0;
}

/*
 * Walks the frames of the thread with the thread pointer `thread`. Its process is walked by table
 * `number` under `generation`. The caller has set runtime_walk.copies. The words are in
 * runtime_walk.words. Returns their number, or -1 if
 * the process has no runtime. A global function: the verifier checks it once.
 */
__noinline int RUNTIME_NAMED(python_walk)(__u32 number, __u64 generation, __u64 thread)
{
	const struct runtime_facts *facts = bpf_map_lookup_elem(&runtime_facts, &number);
	struct runtime_walk *w;
	const volatile struct python_layout *l;
	struct {
		struct runtime_walk *w;
		__u64 table;
	} context;
	__u64 outer;

	if (!facts || !generation || READ_WORD(facts->proved.table_generation) != generation)
		return -1;
	w = runtime_walk_get();
	if (!w)
		return -1;
	w->facts = facts->proved;
	if (READ_ORDERED(facts->proved.table_generation) != generation)
		return -1;
	w->thread = thread;
	w->second = bpf_ktime_get_ns() >> 30;
	w->delayed = 0;
	w->count = 0;
	w->end = RUNTIME_END_NONE;
	l = runtime_layout(w);
	find_state(w);
	if (!w->state)
		return 0;
	w->end = RUNTIME_END_TORN;
	outer = w->state;
	if ((l->outer && (read_word(outer + l->outer, &outer) || !outer)) ||
	    read_word(outer + l->frame, &w->frame))
		return 0;
	if (!w->frame) {
		w->end = RUNTIME_END_NONE;
		return 0;
	}
	w->end = RUNTIME_END_DEPTH;
	context.w = w;
	context.table = number;
	bpf_loop(2 * RUNTIME_FRAMES_MAX, python_step, &context, 0);
	return w->count;
}

#endif
