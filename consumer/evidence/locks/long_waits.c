/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/locks/long_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/locks/long_wait_table.h"
#include "consumer/signals/slot_nest.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct long_waits_reading {
	struct long_wait_elements elements;
	bool whole;
	struct long_wait *items; /* owned; of the session's slot and the slots within it */
	size_t count, space;
};

static void free_reading(struct long_waits_reading **r)
{
	long_waits_close(*r);
}

const char *long_waits_end(uint32_t end)
{
	static const char *const words[LONG_WAIT_ENDS_] = {
#define LONG_WAIT_END(id, json, help) [LONG_WAIT_##id] = (json),
#include "shared/abi/long_wait_ends.def"
#undef LONG_WAIT_END
	};

	return words[MIN(end, (uint32_t)LONG_WAIT_OPEN)];
}

struct long_waits_reading *long_waits_open(void)
{
	return calloc(1, sizeof(struct long_waits_reading));
}

/* Replaces invalid values of the kernel side. */
static void tame_wait(struct long_wait *w)
{
	if (w->part >= ACCOUNT_PARTS_)
		w->part = ACCOUNT_OTHER;
	w->end = MIN(w->end, (uint8_t)LONG_WAIT_OPEN);
	w->by_comm[sizeof(w->by_comm) - 1] = '\0';
}

static int keep_part(struct long_waits_reading *r, const struct pinned_maps *pins, uint32_t slot)
{
	int e = array_reserve(&r->items, &r->space, r->count + r->elements.part.count,
			      sizeof(*r->items));

	for (uint32_t i = 0; e == 0 && i < r->elements.part.count; i++) {
		if (!slot_nest_has(pins, r->elements.values[i].slot, slot))
			continue;
		r->items[r->count] = r->elements.values[i];
		tame_wait(&r->items[r->count++]);
	}
	return e;
}

int long_waits_step(struct long_waits_reading *r, const struct pinned_maps *pins, uint32_t slot,
		    uint64_t until_ns)
{
	while (!r->whole) {
		int e = long_wait_table_read(pins, &r->elements);

		if (e == 0)
			e = keep_part(r, pins, slot);
		if (e < 0)
			return e;
		r->whole = !r->elements.part.more;
		if (!r->whole && clock_mono_ns() >= until_ns)
			return 1;
	}
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct long_wait *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* Clips waits to the session, and drops waits outside of it. */
static void clip_waits(struct long_waits_reading *r, uint64_t start_ns, uint64_t stop_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++) {
		struct long_wait w = r->items[i];

		w.begin_ns = MAX(w.begin_ns, start_ns);
		w.end_ns = MIN(w.end_ns, stop_ns);
		if (w.begin_ns < w.end_ns)
			r->items[n++] = w;
	}
	r->count = n;
}

/* Whether the thread's last listed wait lasts until stop_ns: it has ended after all. */
static bool is_listed(const struct long_waits_reading *r, size_t sorted, uint32_t tid,
		      uint64_t stop_ns)
{
	const struct long_wait wanted = { .tid = tid, .begin_ns = UINT64_MAX };
	size_t after = LOWER_BOUND(i, 0, sorted, by_thread(&r->items[i], &wanted) < 0);

	return after && r->items[after - 1].tid == tid && r->items[after - 1].end_ns >= stop_ns;
}

/* Returns the address of the lock that a thread waits for; 0: not known. */
static uint64_t find_address(const struct long_waits_source *s, uint32_t tid)
{
	size_t at = LOWER_BOUND(i, 0, s->n_locks, s->locks[i].tid < tid);

	return at < s->n_locks && s->locks[at].tid == tid ? s->locks[at].lock.address : 0;
}

/* Adds the waits that were not over at the end, as if they had ended then. 0 or -ENOMEM. */
static int add_open(struct long_waits_reading *r, const struct long_waits_source *s)
{
	const struct open_waits *open = &s->accounts->open;
	uint64_t stop_ns = s->accounts->end_ns;
	size_t sorted = r->count;
	int e = array_reserve(&r->items, &r->space, r->count + open->count, sizeof(*r->items));

	for (size_t i = 0; e == 0 && i < open->count; i++) {
		const struct open_wait *o = &open->items[i];
		struct long_wait w = { .begin_ns = MAX(o->begin_ns, s->start_ns),
				       .end_ns = stop_ns,
				       .tid = o->tid,
				       .tgid = o->tgid,
				       .part = (uint8_t)o->part,
				       .end = LONG_WAIT_OPEN };

		if (w.begin_ns + LONG_WAIT_NS > stop_ns || is_listed(r, sorted, o->tid, stop_ns))
			continue;
		w.address = o->part == ACCOUNT_LOCK ? find_address(s, o->tid) : 0;
		r->items[r->count++] = w;
	}
	return e;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Lists the threads of all waits, each once. NULL without memory. */
static uint32_t *list_tids(const struct long_waits *w, size_t *ret_count)
{
	uint32_t *tids = calloc(2 * w->count + 1, sizeof(*tids));
	size_t n = 0, unique = 0;

	for (size_t i = 0; tids && i < w->count; i++) {
		tids[n++] = w->items[i].tid;
		tids[n++] = w->items[i].by_tid;
	}
	array_sort(tids, n, sizeof(*tids), compare_numbers);
	for (size_t i = 0; i < n; i++)
		if (tids[i] && (!unique || tids[unique - 1] != tids[i]))
			tids[unique++] = tids[i];
	*ret_count = unique;
	return tids;
}

/*
 * Adds an account. If a tid was used twice in the session, the account that lasted longer counts.
 */
static void add_account(struct long_waits_thread *t, const struct thread_account *a)
{
	if (t->wall_ns > a->wall_ns)
		return;
	t->tgid = a->tgid;
	t->start_ns = a->start_ns;
	t->wall_ns = a->wall_ns;
	memcpy(t->part_ns, a->part_ns, sizeof(t->part_ns));
	memcpy(t->comm, a->comm, sizeof(t->comm) - 1);
}

/* Keeps the accounts of the threads that waited or ended a wait. 0 or -ENOMEM. */
static int keep_threads(struct long_waits *w, const struct thread_accounts *accounts)
{
	size_t n, kept = 0;
	_cleanup_free_ uint32_t *tids = list_tids(w, &n);

	if (!tids)
		return -ENOMEM;
	w->threads = calloc(n + 1, sizeof(*w->threads));
	if (!w->threads)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		w->threads[i].tid = tids[i];
	for (size_t i = 0; i < accounts->count; i++) {
		const struct thread_account *a = &accounts->items[i];
		const uint32_t *found =
			array_find(&a->tid, tids, n, sizeof(*tids), compare_numbers);

		if (found)
			add_account(&w->threads[found - tids], a);
	}
	for (size_t i = 0; i < n; i++)
		if (w->threads[i].tgid)
			w->threads[kept++] = w->threads[i];
	w->n_threads = kept;
	return 0;
}

/* Charges the memory of the waits to the budget; if it does not fit, all waits are lost. */
static void charge_waits(struct long_waits *w)
{
	size_t bytes = w->count * sizeof(*w->items) + w->n_threads * sizeof(*w->threads);

	if (stack_table_take_budget(w->budget, bytes)) {
		w->charged = bytes;
		return;
	}
	w->ledger.lost[DROP_MAP_FULL] += w->count;
	free(TAKE_PTR(w->items));
	free(TAKE_PTR(w->threads));
	w->count = w->n_threads = 0;
}

int long_waits_take(struct long_waits_reading *reading, const struct long_waits_source *source,
		    struct long_waits *ret_waits)
{
	_cleanup_(free_reading) struct long_waits_reading *r = reading;
	struct long_waits w = { .budget = source->budget, .lost_ns = source->lost.long_wait_ns };
	int e = long_waits_step(r, source->pins, source->slot, UINT64_MAX);

	if (e < 0)
		return e;
	clip_waits(r, source->start_ns, source->accounts->end_ns);
	array_sort(r->items, r->count, sizeof(*r->items), by_thread);
	e = add_open(r, source);
	if (e < 0)
		return e;
	array_sort(r->items, r->count, sizeof(*r->items), by_thread);
	w.items = TAKE_PTR(r->items);
	w.count = r->count;
	e = keep_threads(&w, source->accounts);
	if (e < 0) {
		long_waits_done(&w);
		return e;
	}
	charge_waits(&w);
	w.ledger.emitted = w.count;
	ledger_lose(&w.ledger, DROP_LONG_WAITS_FULL, source->lost.long_waits,
		    source->lost.long_no_memory);
	w.ledger.attempted = w.ledger.emitted + ledger_lost(&w.ledger);
	*ret_waits = w;
	return 0;
}

void long_waits_close(struct long_waits_reading *r)
{
	if (!r)
		return;
	free(r->items);
	free(r);
}

void long_waits_done(struct long_waits *w)
{
	free(TAKE_PTR(w->items));
	free(TAKE_PTR(w->threads));
	stack_table_give_budget(w->budget, w->charged);
	w->count = w->n_threads = w->charged = 0;
}

const struct long_waits_thread *long_waits_thread(const struct long_waits *w, uint32_t tid)
{
	size_t at = LOWER_BOUND(i, 0, w->n_threads, w->threads[i].tid < tid);

	return at < w->n_threads && w->threads[at].tid == tid ? &w->threads[at] : NULL;
}
