/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/call_times.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/map_batch.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define AT_ONCE 64 /* elements of the map per read, each with a value per CPU */

static int compare_keys(const void *a, const void *b)
{
	const struct call_time *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->call < y->call ? -1 : x->call > y->call;
}

static int compare_calls(const void *a, const void *b)
{
	const struct call_time *x = a, *y = b;

	return x->call < y->call ? -1 : x->call > y->call;
}

/* Sorts the most time first. */
static int compare_times(const void *a, const void *b)
{
	const struct call_time *x = a, *y = b;

	if (x->wait_ns != y->wait_ns)
		return x->wait_ns < y->wait_ns ? 1 : -1;
	return compare_calls(a, b);
}

static void take_longest(struct call_time *t, uint64_t wait_ns, uint64_t end_ns, uint32_t tid,
			 uint32_t tgid, const char *comm)
{
	if (wait_ns <= t->longest_ns)
		return;
	t->longest_ns = wait_ns;
	t->longest_end_ns = end_ns;
	t->longest_tid = tid;
	t->longest_tgid = tgid;
	memcpy(t->longest_comm, comm, sizeof(t->longest_comm) - 1);
	t->longest_comm[sizeof(t->longest_comm) - 1] = 0;
}

/* Sums the values of all CPUs. */
static void sum_cpus(const struct account_call_key *key, const struct call_waits *each,
		     uint32_t cpus, struct call_time *t)
{
	*t = (struct call_time){ .slot = key->slot, .call = key->call };
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		const struct call_waits *w = &each[cpu];

		t->waits += w->waits;
		t->wait_ns += w->wait_ns;
		for (int i = 0; i < QUEUE_BUCKETS; i++)
			t->buckets[i] += w->buckets[i];
		take_longest(t, w->longest_ns, w->longest_end_ns, w->longest_tid, w->longest_tgid,
			     w->longest_comm);
	}
}

int call_times_read(const struct pinned_maps *pins, struct call_times *ret_times)
{
	uint32_t cpus = pins->abi.cpus_possible;
	_cleanup_free_ struct call_waits *values = calloc((size_t)AT_ONCE * cpus, sizeof(*values));
	_cleanup_(call_times_done) struct call_times times = {};
	struct account_call_key keys[AT_ONCE];
	struct map_part part = {};
	int r;

	_Static_assert(sizeof(struct call_waits) % 8 == 0, "the kernel rounds it up");
	times.items = calloc(ACCOUNT_CALLS_MAX, sizeof(*times.items));
	if (!values || !times.items)
		return -ENOMEM;
	do {
		r = map_batch_part(pins->signal_fd[PINNED_MAP_account_calls], keys, values, AT_ONCE,
				   &part);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < part.count && times.count < ACCOUNT_CALLS_MAX; i++)
			sum_cpus(&keys[i], &values[(size_t)i * cpus], cpus,
				 &times.items[times.count++]);
	} while (part.more);
	array_sort(times.items, times.count, sizeof(*times.items), compare_keys);
	*ret_times = times;
	times = (struct call_times){};
	return 0;
}

int call_times_empty(const struct pinned_maps *pins, const struct call_times *times)
{
	for (size_t i = 0; i < times->count; i++) {
		const struct account_call_key key = { .slot = times->items[i].slot,
						      .call = times->items[i].call };

		if (bpf_map_delete_elem(pins->signal_fd[PINNED_MAP_account_calls], &key) < 0 &&
		    errno != ENOENT)
			return -errno;
	}
	table_share_reset(pins, TABLE_ACCOUNT_CALLS);
	return 0;
}

/* Subtracts the reading at the begin; a longest wait that ended before is not the session's. */
static void subtract_before(const struct call_times *before, uint64_t begin_ns, struct call_time *t)
{
	const struct call_time *b =
		array_find(t, before->items, before->count, sizeof(*t), compare_keys);

	if (b) {
		t->waits -= MIN(b->waits, t->waits);
		t->wait_ns -= MIN(b->wait_ns, t->wait_ns);
		for (int i = 0; i < QUEUE_BUCKETS; i++)
			t->buckets[i] -= MIN(b->buckets[i], t->buckets[i]);
	}
	t->over_ns = t->wait_ns;
	if (t->longest_end_ns <= begin_ns)
		t->longest_ns = 0;
}

/* Merges the elements of each call into one. */
static void merge_calls(struct call_times *times)
{
	size_t n = 0;

	array_sort(times->items, times->count, sizeof(*times->items), compare_calls);
	for (size_t i = 0; i < times->count; i++) {
		const struct call_time *one = &times->items[i];
		struct call_time *to = n ? &times->items[n - 1] : NULL;

		if (!to || to->call != one->call) {
			times->items[n++] = *one;
			continue;
		}
		to->waits += one->waits;
		to->open += one->open;
		to->wait_ns += one->wait_ns;
		to->over_ns += one->over_ns;
		for (int k = 0; k < QUEUE_BUCKETS; k++)
			to->buckets[k] += one->buckets[k];
		take_longest(to, one->longest_ns, one->longest_end_ns, one->longest_tid,
			     one->longest_tgid, one->longest_comm);
	}
	times->count = n;
}

/* For waits that were open at the begin, subtracts the time before it. */
static void subtract_open(const struct open_waits *open, struct call_times *times)
{
	for (size_t i = 0; i < open->count; i++) {
		const struct call_time key = { .call = open->items[i].call };
		struct call_time *t =
			array_find(&key, times->items, times->count, sizeof(key), compare_calls);

		if (t)
			t->wait_ns -= MIN(open->items[i].wait_ns, t->wait_ns);
	}
}

static void add_open(const struct open_wait *open, uint64_t begin_ns, uint64_t now_ns,
		     struct call_times *times)
{
	struct call_time *t = &times->items[times->count++];

	*t = (struct call_time){ .call = open->call, .open = 1, .wait_ns = open->wait_ns };
	take_longest(t, MIN(open->wait_ns, now_ns - begin_ns), 0, open->tid, open->tgid,
		     open->comm);
}

/* Keeps the growth of the session's slots since the begin. */
static void keep_gains(const struct pinned_maps *pins, uint32_t slot,
		       const struct call_times *before, uint64_t begin_ns, struct call_times *times)
{
	size_t n = 0;

	for (size_t i = 0; i < times->count; i++) {
		struct call_time one = times->items[i];

		subtract_before(before, begin_ns, &one);
		if (one.waits && slot_nest_has(pins, one.slot, slot))
			times->items[n++] = one;
	}
	times->count = n;
}

int call_times_end(const struct pinned_maps *pins, uint32_t slot, const struct call_times *before,
		   const struct thread_baseline *begin, const struct thread_accounts *accounts,
		   struct call_times *ret_times)
{
	_cleanup_(call_times_done) struct call_times times = {};
	const struct open_waits *open = &accounts->open;
	struct call_time *larger;
	int r = call_times_read(pins, &times);

	if (r < 0)
		return r;
	keep_gains(pins, slot, before, begin->begin_ns, &times);
	larger = reallocarray(times.items, times.count + open->count + 1, sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	times.items = larger;
	for (size_t i = 0; i < open->count; i++)
		add_open(&open->items[i], begin->begin_ns, accounts->end_ns, &times);
	merge_calls(&times);
	subtract_open(&begin->open, &times);
	array_sort(times.items, times.count, sizeof(*times.items), compare_times);
	*ret_times = times;
	times = (struct call_times){};
	return 0;
}

void call_times_done(struct call_times *times)
{
	free(TAKE_PTR(times->items));
	times->count = 0;
}
