/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/lock_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/time_histogram.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/*
 * The rule of the patterns.
 *
 * Convoy: many waits, of several threads, short on average.
 *
 * Long hold: several threads lost most of the time in waits as long as the 90th percentile (a wait
 * that lasted two holds is no other pattern), and one thread held the lock most of the time.
 *
 * Herd: a quarter or more of the waits of many threads follow a wake-up without effect. The kernel
 * side does not know at the first wake-up that others will follow, so of four threads that are
 * woken each time it counts two.
 */
#define HERD_THREADS   4
#define HERD_AGAIN     16
#define HERD_SHARE     4
#define CONVOY_WAITS   32
#define CONVOY_MEAN_NS 10000000ull
#define HOLD_SHARE     2 /* half of the time if all waits were this long */

/* Returns whether the thread is one of those that waited. */
static bool has_waited(const struct lock_waited *w, uint32_t tid)
{
	uint32_t bit = tid % (LOCK_THREAD_WORDS * 64);

	return w->bits[bit / 64] >> (bit % 64) & 1;
}

bool lock_waits_is_handed_on(const struct lock_waits *waits, uint32_t tgid, uint64_t address)
{
	uint64_t all = 0, own = 0;

	for (size_t i = 0; waits && address && i < waits->count; i++) {
		const struct lock_waited *w = &waits->items[i];

		/* Among so many threads every waker would count as one that waited. */
		if (w->lock.address != address || w->lock.tgid != tgid || w->threads < 2 ||
		    w->threads > LOCK_THREAD_WORDS * 64 / 2)
			continue;
		for (uint32_t n = 0; n < w->n_wakers; n++) {
			const struct lock_woken *by = &w->woken[n];

			all += by->waits;
			if (by->kind == LOCK_WAKER_THREAD && by->tgid == tgid &&
			    has_waited(w, by->tid))
				own += by->waits;
		}
	}
	return own && own * 2 >= all;
}

const char *lock_waits_kind(uint32_t kind)
{
	static const char *const names[] = {
#define LOCK(id, json, help) json,
#include "shared/abi/lock_kinds.def"
#undef LOCK
	};

	return names[MIN(kind, (uint32_t)LOCK_OTHER)];
}

const char *lock_waits_memory(uint32_t kind)
{
	static const char *const names[] = {
#define LOCK_MEMORY(id, json, say) json,
#include "shared/abi/lock_memory.def"
#undef LOCK_MEMORY
	};

	return names[kind < LOCK_MEMORY_KINDS_ ? kind : LOCK_MEMORY_UNKNOWN];
}

const char *lock_waits_waker(uint32_t kind)
{
	static const char *const names[LOCK_WAKER_KINDS_] = {
		[LOCK_WAKER_THREAD] = "thread",
		[LOCK_WAKER_INTERRUPT] = "interrupt",
		[LOCK_WAKER_SIGNAL] = "signal",
	};

	return names[kind < LOCK_WAKER_KINDS_ ? kind : LOCK_WAKER_INTERRUPT];
}

const char *lock_waits_pattern(enum lock_pattern pattern)
{
	static const char *const names[] = {
		[LOCK_PATTERN_LONG_HOLD] = "long_hold",
		[LOCK_PATTERN_CONVOY] = "convoy",
		[LOCK_PATTERN_HERD] = "herd",
	};

	return names[pattern];
}

/* Returns the upper bound of this percentile of the waits. */
static uint64_t find_percentile(const struct lock_waited *w, unsigned int pct)
{
	return MIN(time_histogram_percentile_of(w->buckets, LOCK_BUCKETS, pct), w->longest_ns);
}

/* A difference under construction. */
struct difference {
	const struct lock_baseline *before, *after;
	uint32_t only_tgid;
	struct lock_waits all;
};

static int compare_locks(const void *a, const void *b)
{
	const struct lock_key *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static const struct lock_sums *find_before(const struct lock_baseline *before,
					   const struct lock_key *key)
{
	static const struct lock_sums none;
	const struct lock_element *found = array_find(key, before->locks, before->n_locks,
						      sizeof(*before->locks), compare_locks);

	return found ? &found->sums : &none;
}

/* Adds the waits for a lock that ended since the begin. */
static void add_ended(struct lock_waited *w, const struct lock_element *e,
		      const struct lock_sums *before)
{
	unsigned int last = 0;

	w->waits = e->sums.waits - MIN(before->waits, e->sums.waits);
	w->total_ns = e->sums.total_ns - MIN(before->total_ns, e->sums.total_ns);
	w->woken_in_vain = MIN(e->sums.again - before->again, w->waits);
	for (unsigned int i = 0; i < LOCK_BUCKETS; i++) {
		w->buckets[i] = e->sums.buckets[i] - MIN(before->buckets[i], e->sums.buckets[i]);
		last = w->buckets[i] ? i : last;
	}
	memcpy(w->bits, e->sums.threads, sizeof(w->bits));
	w->longest_ns = MIN(e->sums.longest_ns, w->total_ns);
	w->longest_tid = e->sums.longest_tid;
	memcpy(w->longest_comm, e->sums.longest_comm, sizeof(w->longest_comm) - 1);
	/*
	 * The longest wait was before the session: the session's own is known only by its histogram
	 * bucket.
	 */
	if (e->sums.longest_ns == before->longest_ns) {
		w->longest_ns = MIN(time_histogram_le_of(last, LOCK_BUCKETS), w->longest_ns);
		w->longest_tid = 0;
	}
}

/* Returns the row of a lock; NULL if it belongs to another process. */
static struct lock_waited *find_lock(const struct difference *d, const struct lock_key *key)
{
	return array_find(key, d->all.items, d->all.count, sizeof(*d->all.items), compare_locks);
}

static bool is_wanted(const struct difference *d, const struct lock_key *key)
{
	return !d->only_tgid || key->tgid == d->only_tgid;
}

static void add_lock(struct difference *d, const struct lock_key *key, uint64_t start_ns,
		     const char *comm, const struct lock_memory *memory)
{
	struct lock_waited *w = &d->all.items[d->all.count];

	if (!is_wanted(d, key))
		return;
	*w = (struct lock_waited){ .lock = *key, .locks = 1, .start_ns = start_ns };
	memcpy(w->comm, comm, sizeof(w->comm) - 1);
	w->memory = *memory;
	w->memory.name[sizeof(w->memory.name) - 1] = '\0';
	d->all.count++;
}

/* Makes a row for each lock that was waited for, in the order of compare_locks. 0 or -ENOMEM. */
static int make_places(struct difference *d)
{
	const struct lock_baseline *after = d->after;
	struct lock_waits *all = &d->all;
	size_t n = 0;

	all->items = calloc(after->n_locks + after->n_open + 1, sizeof(*all->items));
	if (!all->items)
		return -ENOMEM;
	for (size_t i = 0; i < after->n_locks; i++) {
		const struct lock_element *e = &after->locks[i];

		if (e->sums.waits > find_before(d->before, &e->key)->waits)
			add_lock(d, &e->key, e->sums.start_ns, e->sums.comm, &e->sums.memory);
	}
	for (size_t i = 0; i < after->n_open; i++) {
		const struct lock_record *open = &after->open[i];

		add_lock(d, &open->lock, open->start_ns, open->comm, &open->memory);
	}
	array_sort(all->items, all->count, sizeof(*all->items), compare_locks);
	for (size_t i = 0; i < all->count; i++)
		if (!n || compare_locks(&all->items[n - 1], &all->items[i]) != 0)
			all->items[n++] = all->items[i];
	all->count = n;
	return 0;
}

static int compare_tids(const void *a, const void *b)
{
	const struct lock_record *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Whether a wait that began before the session is still going on. */
static bool is_open_still(const struct difference *d, const struct lock_record *open)
{
	const struct lock_record *now =
		array_find(open, d->after->open, d->after->n_open, sizeof(*open), compare_tids);

	return now && now->since_ns == open->since_ns;
}

/* For waits that ended in the session, subtracts the time before it. */
static void clip_begun(struct difference *d)
{
	for (size_t i = 0; i < d->before->n_open; i++) {
		const struct lock_record *open = &d->before->open[i];
		struct lock_waited *w = find_lock(d, &open->lock);
		uint64_t early_ns = d->before->begin_ns - MIN(open->since_ns, d->before->begin_ns);

		if (!w || !early_ns || is_open_still(d, open))
			continue;
		w->total_ns -= MIN(early_ns, w->total_ns);
		w->longest_ns = MIN(w->longest_ns, w->total_ns);
	}
}

/* Adds a wait that is not over, up to now. */
static void add_open(struct difference *d, const struct lock_record *open)
{
	uint64_t since_ns = MAX(open->since_ns, d->before->begin_ns);
	uint64_t ns = open->now_ns - MIN(since_ns, open->now_ns);
	struct lock_waited *w = find_lock(d, &open->lock);

	if (!w)
		return;
	w->waits++;
	w->open++;
	w->total_ns += ns;
	w->open_ns += ns;
	w->buckets[time_histogram_element_of(ns, LOCK_BUCKETS)]++;
	w->bits[open->tid / 64 % LOCK_THREAD_WORDS] |= 1ull << open->tid % 64;
	if (ns <= w->longest_ns)
		return;
	w->longest_ns = ns;
	w->longest_tid = open->tid;
	memcpy(w->longest_comm, open->thread_comm, sizeof(w->longest_comm) - 1);
}

/* Inserts a waker into the reported wakers of its lock, the one with the most time first. */
static void add_woken(struct lock_waited *w, const struct lock_woken *woken)
{
	uint32_t at = MIN(w->n_wakers, (uint32_t)LOCK_WAITS_WAKERS - 1);

	w->wakers++;
	w->waker_waits += woken->waits;
	if (w->n_wakers == LOCK_WAITS_WAKERS && w->woken[at].held_ns >= woken->held_ns)
		return;
	w->n_wakers = at + 1;
	for (; at && w->woken[at - 1].held_ns < woken->held_ns; at--)
		w->woken[at] = w->woken[at - 1];
	w->woken[at] = *woken;
}

static int compare_wakers(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct lock_waker_key));
}

/* Adds the long waits that a thread has ended since the begin. */
static void add_waker(struct difference *d, const struct lock_waker_element *e)
{
	struct lock_waited *w = find_lock(d, &e->key.lock);
	const struct lock_waker_element *before = array_find(
		e, d->before->wakers, d->before->n_wakers, sizeof(*before), compare_wakers);
	struct lock_woken woken = { .kind = e->key.kind, .tid = e->key.tid };

	woken.tgid = e->waker.tgid;
	woken.waits = e->waker.waits - (before ? MIN(before->waker.waits, e->waker.waits) : 0);
	woken.held_ns =
		e->waker.held_ns - (before ? MIN(before->waker.held_ns, e->waker.held_ns) : 0);
	memcpy(woken.comm, e->waker.comm, sizeof(woken.comm) - 1);
	if (w && (woken.waits || woken.held_ns))
		add_woken(w, &woken);
}

static enum lock_pattern find_pattern(const struct lock_waited *w)
{
	uint64_t mean_ns = w->waits ? w->total_ns / w->waits : 0;
	uint64_t long_ns = w->p90_ns ? w->p90_ns : w->longest_ns; /* no finished wait: no p90 */

	if (w->threads < 2)
		return LOCK_PATTERN_NONE;
	if (w->threads >= HERD_THREADS && w->woken_in_vain >= HERD_AGAIN &&
	    w->woken_in_vain * HERD_SHARE >= w->waits)
		return LOCK_PATTERN_HERD;
	if (w->waits >= CONVOY_WAITS && mean_ns < CONVOY_MEAN_NS)
		return LOCK_PATTERN_CONVOY;
	if (w->n_wakers && w->woken[0].kind == LOCK_WAKER_THREAD &&
	    w->woken[0].held_ns * 2 > w->total_ns && mean_ns * HOLD_SHARE >= long_ns)
		return LOCK_PATTERN_LONG_HOLD;
	return LOCK_PATTERN_NONE;
}

static void finish_lock(struct lock_waited *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(w->bits); i++)
		w->threads += (uint32_t)__builtin_popcountll(w->bits[i]);
	w->p50_ns = find_percentile(w, 50);
	w->p90_ns = find_percentile(w, 90);
	w->p99_ns = find_percentile(w, 99);
	w->pattern = find_pattern(w);
}

static int by_time(const void *a, const void *b)
{
	const struct lock_waited *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return compare_locks(&x->lock, &y->lock);
}

static void add_sums(struct lock_waited *to, const struct lock_waited *w)
{
	to->locks += w->locks;
	to->waits += w->waits;
	to->total_ns += w->total_ns;
	to->open += w->open;
	to->open_ns += w->open_ns;
	to->longest_ns = MAX(to->longest_ns, w->longest_ns);
	to->waker_waits += w->waker_waits;
	for (unsigned int i = 0; i < LOCK_BUCKETS; i++)
		to->buckets[i] += w->buckets[i];
}

static struct slot_locks subtract_losses(const struct slot_locks *now,
					 const struct slot_locks *before)
{
	return (struct slot_locks){
		.waits = now->waits - before->waits,
		.wakers = now->wakers - before->wakers,
		.stacks = now->stacks - before->stacks,
		.ring_full = now->ring_full - before->ring_full,
		.no_frame = now->no_frame - before->no_frame,
		.long_waits = now->long_waits - before->long_waits,
		.long_wait_ns = now->long_wait_ns - before->long_wait_ns,
		.no_memory = now->no_memory - before->no_memory,
		.long_no_memory = now->long_no_memory - before->long_no_memory,
	};
}

/* Sorts the locks, and merges the locks with the least time into one without a name. */
static void finish_all(struct difference *d)
{
	struct lock_waits *all = &d->all;
	struct lock_waited rest = {};

	for (size_t i = 0; i < all->count; i++)
		finish_lock(&all->items[i]);
	array_sort(all->items, all->count, sizeof(*all->items), by_time);
	for (size_t i = 0; i < all->count; i++)
		add_sums(&all->all, &all->items[i]);
	if (all->count > LOCK_WAITS_NAMED) {
		for (size_t i = LOCK_WAITS_NAMED; i < all->count; i++)
			add_sums(&rest, &all->items[i]);
		all->items[LOCK_WAITS_NAMED] = rest;
		all->count = LOCK_WAITS_NAMED + 1;
	}
	all->lost = subtract_losses(&d->after->losses, &d->before->losses);
	all->wakers_lost = all->lost.wakers;
	all->stacks.attempted = all->lost.stacks;
	all->stacks.lost[DROP_RING_FULL] = all->lost.ring_full;
	all->stacks.lost[DROP_STACK_USER] = all->lost.no_frame;
	all->ledger.emitted = all->all.waits;
	ledger_lose(&all->ledger, DROP_LOCKS_FULL, all->lost.waits, all->lost.no_memory);
	all->ledger.attempted = all->ledger.emitted + ledger_lost(&all->ledger);
}

static void add_all(struct difference *d)
{
	for (size_t i = 0; i < d->after->n_locks; i++) {
		const struct lock_element *e = &d->after->locks[i];
		struct lock_waited *w = find_lock(d, &e->key);

		if (w)
			add_ended(w, e, find_before(d->before, &e->key));
	}
	clip_begun(d);
	for (size_t i = 0; i < d->after->n_open; i++)
		add_open(d, &d->after->open[i]);
	for (size_t i = 0; i < d->after->n_wakers; i++)
		add_waker(d, &d->after->wakers[i]);
}

static int read_sorted(const struct pinned_maps *pins, uint32_t slot, struct lock_baseline *ret)
{
	int r = lock_maps_read(pins, slot, ret);

	if (r < 0)
		return r;
	array_sort(ret->locks, ret->n_locks, sizeof(*ret->locks), compare_locks);
	array_sort(ret->wakers, ret->n_wakers, sizeof(*ret->wakers), compare_wakers);
	array_sort(ret->open, ret->n_open, sizeof(*ret->open), compare_tids);
	return 0;
}

int lock_waits_begin(const struct pinned_maps *pins, uint32_t slot,
		     struct lock_baseline *ret_before)
{
	return read_sorted(pins, slot, ret_before);
}

int lock_waits_end(const struct pinned_maps *pins, uint32_t slot, uint32_t only_tgid,
		   const struct lock_baseline *before, struct lock_waits *ret_waits)
{
	_cleanup_(lock_maps_forget) struct lock_baseline after = {};
	struct difference d = { .before = before, .after = &after, .only_tgid = only_tgid };
	int r = read_sorted(pins, slot, &after);

	if (r == 0)
		r = make_places(&d);
	if (r < 0)
		return r;
	add_all(&d);
	finish_all(&d);
	d.all.open = TAKE_PTR(after.open);
	d.all.n_open = after.n_open;
	*ret_waits = d.all;
	return 0;
}

void lock_waits_done(struct lock_waits *waits)
{
	free(TAKE_PTR(waits->items));
	free(TAKE_PTR(waits->open));
	waits->count = waits->n_open = 0;
}
