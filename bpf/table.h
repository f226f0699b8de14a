/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h: makes elements of hash tables when their keys are first met. A table without
 * preallocation refuses a new element for two reasons: it is full (-E2BIG), or the CPU's cache of
 * the kernel's allocator is empty until an interrupt refills it (-ENOMEM; -EBUSY: the bucket's lock
 * is held on this CPU). The second reason passes: the next event of the same key tries again.
 */
#ifndef TROCAR_BPF_TABLE_H
#define TROCAR_BPF_TABLE_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

/*
 * Returns the element of the key, made as a copy of `fresh` when there is none. NULL without room:
 * *ret_error is the error of the update then, of 32 bits, because before Linux 6.4 the upper half
 * of its result is garbage.
 */
static __always_inline void *table_get(void *map, const void *key, const void *fresh,
				       int *ret_error)
{
	void *value = bpf_map_lookup_elem(map, key);

	*ret_error = 0;
	if (value)
		return value;
	*ret_error = bpf_map_update_elem(map, key, fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/* Whether the update found no room for a reason that passes. */
static __always_inline bool table_was_short(int error)
{
	return error != -E2BIG;
}

#endif
