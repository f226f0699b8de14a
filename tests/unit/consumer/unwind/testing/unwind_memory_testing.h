/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_memory_testing.h: bpf/unwind/unwind.h on the host: the pool is an array, the rules are a
 * dictionary's, and memory is this process's own, read in a way that fails instead of crashing.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_UNWIND_MEMORY_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_UNWIND_MEMORY_TESTING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "consumer/unwind/compile/unwind_rules.h"
#include "consumer/unwind/compile/unwind_table.h"

static struct {
	__u64 *elements; /* owned */
	__u32 count;
	struct unwind_rules rules;
} pool;

static inline const __u64 *unwind_element(__u32 index)
{
	return index < pool.count ? &pool.elements[index] : NULL;
}

static inline const struct unwind_rule *unwind_rule_at(__u32 index)
{
	return index < pool.rules.count ? &pool.rules.rules[index] : NULL;
}

#ifndef POOL_OWN_READ
static inline long unwind_read(void *to, __u32 bytes, __u64 address)
{
	struct iovec here = { .iov_base = to, .iov_len = bytes };
	struct iovec there = { .iov_base = (void *)(uintptr_t)address, .iov_len = bytes };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes ? 0 : -1;
}
#endif

static inline __u32 pool_append(const void *from, size_t bytes)
{
	__u32 first = pool.count, more = (__u32)((bytes + 7) / 8);

	pool.elements = realloc(pool.elements, (first + more) * sizeof(*pool.elements));
	if (!pool.elements)
		abort();
	pool.elements[first + more - 1] = 0;
	memcpy(&pool.elements[first], from, bytes);
	pool.count += more;
	return first;
}

/* Copies a table into the pool. */
static inline struct unwind_place pool_place(const struct unwind_table *t)
{
	struct unwind_place place = { .row_count = t->row_count, .page_count = t->page_count };

	place.rows = pool_append(t->rows, t->row_count * sizeof(*t->rows));
	place.pages = pool_append(t->pages, t->page_count * sizeof(*t->pages));
	return place;
}

#define UNWIND_HOST
#include "bpf/unwind/unwind.h"

#endif
