/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * account_calls.h: sums the waits of threads by system call. It needs no hook on system calls: the
 * number is in the registers that a thread has saved when it goes to sleep.
 */
#ifndef TROCAR_BPF_TIME_ACCOUNT_CALLS_H
#define TROCAR_BPF_TIME_ACCOUNT_CALLS_H

#include "bpf/maps/table.h"
#include "bpf/maps/time_bucket.h"
#include "bpf/time/account.h"

/* Not preallocated, as `accounts`. */
MAP_FLAGS(PERCPU_HASH, BPF_F_NO_PREALLOC, account_calls, struct account_call_key, struct call_waits,
	  ACCOUNT_CALLS_MAX);

static __always_inline void note_longest(struct call_waits *waits, __u64 wait_ns, __u64 end_ns)
{
	__u64 ids = bpf_get_current_pid_tgid();

	waits->longest_ns = wait_ns;
	waits->longest_end_ns = end_ns;
	waits->longest_tid = (__u32)ids;
	waits->longest_tgid = ids >> 32;
	bpf_get_current_comm(waits->longest_comm, COMM_BYTES);
}

static const struct call_waits no_call_waits;

/*
 * Counts a wait that was lost because the table had no space, in the slot's watch and in the
 * watches around it. This function and the next one are global: the verifier checks each once.
 */
__noinline int account_calls_lose(__u32 index, __u64 wait_ns, int error)
{
	struct slot_accounts *losses;
	const struct slot *slot;

	losses_for_each (losses, account_losses, slot, index) {
		losses->calls_full++;
		losses->calls_full_ns += wait_ns;
		if (table_was_short(error))
			losses->calls_no_memory++;
	}
	return 0;
}

/* Counts a wait of the current thread that is over, in the system call of its account. */
__noinline int account_calls_add(const struct time_account *a, __u64 wait_ns)
{
	__u32 bucket = time_bucket(wait_ns);
	struct account_call_key key = {};
	struct call_waits *waits;
	int error;

	if (!a)
		return 0;
	key.slot = a->slot;
	key.call = a->call;
	waits = table_get(&account_calls, TABLE_ACCOUNT_CALLS, key.slot, &key, &no_call_waits,
			  &error);
	if (!waits)
		return account_calls_lose(key.slot, wait_ns, error);
	waits->waits++;
	waits->wait_ns += wait_ns;
	if (bucket < QUEUE_BUCKETS)
		waits->buckets[bucket]++;
	if (wait_ns > waits->longest_ns)
		note_longest(waits, wait_ns, a->since_ns);
	return 0;
}

#endif
