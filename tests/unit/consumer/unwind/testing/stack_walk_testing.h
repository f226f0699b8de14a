/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_walk_testing.h: what bpf/stack/stack.h does with bpf/unwind/unwind_walk.h (stack_walk,
 * stack_frame), on the host: the reported frames, and the end of a stack. The includer has given
 * tables and memory and included bpf/unwind/unwind_walk.h; else there are none.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_STACK_WALK_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_STACK_WALK_TESTING_H

#include <stddef.h>

#include "shared/abi/abi.h"

#ifndef UNWIND_HOST
#define UNWIND_HOST
static inline const __u64 *unwind_element(__u32 index)
{
	return NULL;
}

static inline const struct unwind_rule *unwind_rule_at(__u32 index)
{
	return NULL;
}

static inline const struct unwind_file *unwind_file_at(__u32 index)
{
	return NULL;
}

static inline long unwind_read(void *to, __u32 bytes, __u64 address)
{
	return -1;
}
#include "tests/unit/consumer/unwind/testing/mapped_file_testing.h"

#include "bpf/unwind/unwind_walk.h"
#endif

/* A stack, leaf first. */
struct taken {
	__u64 frames[STACK_FRAMES];
	__u32 count;
	enum unwind_end end;
	__u32 by_pointer;
	__u8 followed[STACK_FRAMES]; /* by the frame pointer: 1; 2: and no frame is left out */
};

/* Called before each step; it changes the words that another writer would. */
typedef void (*taking_before)(const struct unwind_walk *w, const struct taken *so_far);

static inline __u64 taking_fill(struct unwind_ranges *r, const struct unwind_process *p)
{
	__u64 fill = *(const volatile __u64 *)&r->table_generation;

	return fill && *(const volatile __u64 *)&p->published == fill ? fill : 0;
}

/* What the walks have found, of all that are not to start without. */
static struct unwind_cache taking_cache;
static struct unwind_code_cache taking_code;
static __u64 taking_changes; /* of the memory map, plus 1; 0: they are not counted */

/* Walks from `from` by a table that is published; `before` may be NULL. */
static inline void taking(const struct unwind_frame *from, struct unwind_ranges *r,
			  const struct unwind_process *p, taking_before before, struct taken *t)
{
	__u64 fill = taking_fill(r, p), pc;
	__u8 followed;
	struct unwind_walk w = { .frame = *from,
				 .table_generation = fill,
				 .code.left = UNWIND_CODE_ALL };

	unwind_cache_begin(&taking_cache, &(struct unwind_checked){ .table_generation = fill,
								    .changes = taking_changes });
	*t = (struct taken){ .end = UNWIND_END_NONE };
	unwind_begin(&w.frame);
	do {
		if (before)
			before(&w, t);
		pc = w.frame.pc;
		followed = t->count && w.by_pointer ? (w.adjacent ? 2 : 1) : 0;
		if (!unwind_walk_advance(&w, r, p, &taking_cache, &taking_code) && t->count > 0)
			break;
		t->followed[t->count] = followed;
		t->frames[t->count++] = pc;
	} while (w.stop_reason == UNWIND_END_NONE && t->count < STACK_FRAMES);
	t->end = w.stop_reason == UNWIND_END_NONE ? UNWIND_END_DEPTH : w.stop_reason;
	t->by_pointer = w.by_pointer;
	if (*(const volatile __u64 *)&r->table_generation == fill)
		return;
	t->end = UNWIND_END_SWITCHED;
	t->count = t->count > 0;
}

#endif
