/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account_find.h: finds the time account of a thread. A lookup in a hash map is two calls into the
 * kernel and takes a third of the cost of a switch; a lookup in an array is no call. So an array is
 * used as a cache in front of the hash map: the first thread that uses an element, by its tid, owns
 * it. Most services have fewer threads that switch often than the array has elements, and their
 * tids are consecutive.
 */
#ifndef TROCAR_BPF_TIME_ACCOUNT_FIND_H
#define TROCAR_BPF_TIME_ACCOUNT_FIND_H

#include <linux/bpf.h>
#include <linux/errno.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"

/* Not preallocated: empty and without memory outside sessions. The consumer empties it. */
__weak MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, accounts, struct account_key, struct thread_times,
		 ACCOUNTS_DEFAULT);

/* The consumer reads it and frees elements through mmap, one word at a time. */
__weak MAP_FLAGS(ARRAY, BPF_F_MMAPABLE, accounts_near, __u32, struct near_account, ACCOUNTS_NEAR);

/* The loader sets it, unless `accounts` is hardly larger than the array. */
const volatile bool has_near __weak = false;

/*
 * Returns the array element for the thread's tid, or NULL. `at`: storage for the key, on the
 * caller's stack.
 */
static __always_inline struct near_account *account_near(const struct account_key *key, __u32 *at)
{
	*at = key->tid % ACCOUNTS_NEAR;
	return has_near ? bpf_map_lookup_elem(&accounts_near, at) : 0;
}

/*
 * Returns the account of the thread, or NULL. `at`: storage for the key, passed by callers that
 * have no space left on their stack.
 */
static __always_inline struct thread_times *account_find_by(const struct account_key *key,
							    __u32 *at)
{
	struct near_account *near = account_near(key, at);

	if (near && READ_WORD(near->owner) == (key->tid | ACCOUNT_NEAR_READY))
		return &near->times;
	return bpf_map_lookup_elem(&accounts, key);
}

static __always_inline struct thread_times *account_find(const struct account_key *key)
{
	__u32 at;

	return account_find_by(key, &at);
}

/*
 * Adds the account and returns its place. Returns NULL with *ret_error if there is no space, or if
 * another CPU added one first.
 */
static __always_inline struct thread_times *
account_add_new(const struct account_key *key, const struct thread_times *t, int *ret_error)
{
	__u32 at;
	struct near_account *near = account_near(key, &at);
	__u64 owner;

	if (near) {
		owner = __sync_val_compare_and_swap(&near->owner, 0, (__u64)key->tid);
		if (!owner) {
			near->times = *t;
			__sync_val_compare_and_swap(&near->owner, (__u64)key->tid,
						    key->tid | ACCOUNT_NEAR_READY);
			return &near->times;
		}
		if ((__u32)owner == key->tid) {
			*ret_error = -EEXIST;
			return 0;
		}
	}
	*ret_error = table_add(&accounts, TABLE_ACCOUNTS, t->account.slot, key, t);
	return *ret_error ? 0 : bpf_map_lookup_elem(&accounts, key);
}

/* Removes the account of the thread, which is in the watch of slot `slot`. */
static __always_inline void account_remove(const struct account_key *key, __u32 slot)
{
	__u32 at;
	struct near_account *near = account_near(key, &at);

	if (near && (__u32)READ_WORD(near->owner) == key->tid)
		__sync_val_compare_and_swap(&near->owner, key->tid | ACCOUNT_NEAR_READY, 0);
	else if (!bpf_map_delete_elem(&accounts, key))
		table_count(TABLE_ACCOUNTS, slot, -1);
}

#endif
