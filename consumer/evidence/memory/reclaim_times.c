/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/memory/reclaim_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/signals/counter_keys.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char *const kinds[] = {
#define RECLAIM_KIND(id, json, help) [RECLAIM_##id] = (json),
#include "shared/abi/reclaim_kinds.def"
#undef RECLAIM_KIND
};
_Static_assert(ARRAY_SIZE(kinds) == RECLAIM_KINDS_, "a row for each");

const char *reclaim_times_kind_name(enum reclaim_kind kind)
{
	return kinds[kind];
}

/* ---- counts of the session: the difference of two readings */

struct gain {
	struct reclaim_key key;
	struct reclaim_time time;
	uint64_t before_ns; /* of events that ended in the session: their time before it */
};

struct gains {
	struct gain *items; /* owned */
	size_t count;
};

static void forget_gains(struct gains *gains)
{
	free(gains->items);
}

static void subtract_sums(const struct reclaim_sums *before, const struct reclaim_sums *now,
			  struct reclaim_time *ret_time)
{
	*ret_time = (struct reclaim_time){
		.count = counter_keys_growth(before->count, now->count),
		.time_ns = counter_keys_growth(before->time_ns, now->time_ns),
		.whole_ns = counter_keys_growth(before->time_ns, now->time_ns),
		.longest_ns = now->longest_ns > before->longest_ns ? now->longest_ns : 0,
		.pages = counter_keys_growth(before->pages, now->pages),
		.orphans = counter_keys_growth(before->orphans, now->orphans),
	};
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		ret_time->steps[i] = counter_keys_growth(before->steps[i], now->steps[i]);
}

/* Returns a new element for the key: `items` has space for all. */
static struct gain *new_gain(struct gains *gains, const struct reclaim_key *key)
{
	gains->items[gains->count] = (struct gain){ .key = *key };
	return &gains->items[gains->count++];
}

/*
 * Adds the time of unmatched ends: these events began before the programs were attached, and so
 * before the session. If begins were dropped (map full), their ends look alike: then the time is
 * not known.
 */
static void add_orphans(struct gain *gain, const struct reclaim_sums *was,
			const struct reclaim_sums *is, uint64_t from_ns, bool untracked)
{
	uint64_t ends_ns = counter_keys_growth(was->orphan_ends_ns, is->orphan_ends_ns);

	if (untracked || ends_ns < gain->time.orphans * from_ns)
		return;
	gain->time.time_ns += ends_ns - gain->time.orphans * from_ns;
}

/*
 * The kernel side's tables may hold anything that a compromised consumer wrote: check every value.
 */
static int add_sums(struct gains *gains, const struct reclaim_reading *before,
		    const struct reclaim_reading *now, bool untracked)
{
	static const struct reclaim_sums none;
	_cleanup_(counter_keys_done) struct counter_keys known = {};
	int r = counter_keys_sort(before->keys, before->n_sums, sizeof(*before->keys), &known);

	for (uint32_t i = 0; r == 0 && i < now->n_sums; i++) {
		const struct reclaim_sums *was = counter_keys_value(
			&known, &now->keys[i], before->sums, sizeof(*before->sums), &none);
		struct gain *gain;

		if (now->keys[i].kind >= RECLAIM_KINDS_)
			continue;
		gain = new_gain(gains, &now->keys[i]);
		subtract_sums(was, &now->sums[i], &gain->time);
		add_orphans(gain, was, &now->sums[i], before->at_ns, untracked);
	}
	return r;
}

static struct reclaim_key key_of(const struct reclaim_open_key *thread,
				 const struct reclaim_open *open)
{
	return (struct reclaim_key){ .cgroup_id = open->cgroup_id,
				     .slot = open->slot,
				     .device = open->device,
				     .kind = thread->kind };
}

/* Adds the events that are not over, from their begin or the session's, whichever is later. */
static void add_open(struct gains *gains, const struct reclaim_reading *before,
		     const struct reclaim_reading *now)
{
	for (uint32_t i = 0; i < now->n_open; i++) {
		const struct reclaim_key key = key_of(&now->open_keys[i], &now->open[i]);
		uint64_t since_ns = MAX(now->open[i].since_ns, before->at_ns), ns;
		struct gain *gain;

		if (key.kind >= RECLAIM_KINDS_)
			continue;
		ns = now->at_ns - MIN(since_ns, now->at_ns);
		gain = new_gain(gains, &key);
		gain->time.open = 1;
		gain->time.open_ns = gain->time.time_ns = ns;
	}
}

/* Whether the reading `now` still has the thread's event that was open before. */
static bool goes_on(const struct reclaim_reading *now, const struct counter_keys *known,
		    const struct reclaim_open_key *thread, const struct reclaim_open *open)
{
	size_t at = counter_keys_find(known, thread);

	return at < known->count && now->open[at].since_ns == open->since_ns;
}

/* For events that ended in the session, records their time before it. */
static int note_begin(struct gains *gains, const struct reclaim_reading *before,
		      const struct reclaim_reading *now)
{
	_cleanup_(counter_keys_done) struct counter_keys known = {};
	int r = counter_keys_sort(now->open_keys, now->n_open, sizeof(*now->open_keys), &known);

	for (uint32_t i = 0; r == 0 && i < before->n_open; i++) {
		const struct reclaim_key key = key_of(&before->open_keys[i], &before->open[i]);

		if (key.kind < RECLAIM_KINDS_ &&
		    !goes_on(now, &known, &before->open_keys[i], &before->open[i]))
			new_gain(gains, &key)->before_ns =
				before->at_ns - MIN(before->open[i].since_ns, before->at_ns);
	}
	return r;
}

static void add_time(struct reclaim_time *to, const struct reclaim_time *more)
{
	to->count += more->count;
	to->time_ns += more->time_ns;
	to->whole_ns += more->whole_ns;
	to->longest_ns = MAX(to->longest_ns, more->longest_ns);
	to->pages += more->pages;
	to->orphans += more->orphans;
	to->open += more->open;
	to->open_ns += more->open_ns;
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		to->steps[i] += more->steps[i];
}

/* By kind and disk, because parts are made by kind and disk; equal keys are adjacent. */
static int compare_gains(const void *a, const void *b)
{
	const struct reclaim_key *x = &((const struct gain *)a)->key;
	const struct reclaim_key *y = &((const struct gain *)b)->key;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return memcmp(x, y, sizeof(*x));
}

/* Merges elements with the same key, and subtracts the time before the session. */
static void merge_gains(struct gains *gains)
{
	size_t n = 0;

	array_sort(gains->items, gains->count, sizeof(*gains->items), compare_gains);
	for (size_t i = 0; i < gains->count; i++) {
		struct gain *last = n ? &gains->items[n - 1] : NULL;

		if (!last || compare_gains(last, &gains->items[i])) {
			gains->items[n++] = gains->items[i];
			continue;
		}
		add_time(&last->time, &gains->items[i].time);
		last->before_ns += gains->items[i].before_ns;
	}
	gains->count = n;
	for (size_t i = 0; i < n; i++)
		gains->items[i].time.time_ns -=
			MIN(gains->items[i].before_ns, gains->items[i].time.time_ns);
}

static int find_gains(const struct reclaim_reading *before, const struct reclaim_reading *now,
		      bool untracked, struct gains *ret_gains)
{
	size_t most = (size_t)now->n_sums + now->n_open + before->n_open + 1;
	int r;

	*ret_gains = (struct gains){ .items = calloc(most, sizeof(struct gain)) };
	if (!ret_gains->items)
		return -ENOMEM;
	r = add_sums(ret_gains, before, now, untracked);
	if (r < 0)
		return r;
	add_open(ret_gains, before, now);
	r = note_begin(ret_gains, before, now);
	if (r == 0)
		merge_gains(ret_gains);
	return r;
}

/* ---- the session's own events */

static bool is_empty(const struct reclaim_time *t)
{
	return !t->count && !t->open && !t->orphans;
}

/*
 * Count an unmatched end as one event, unless begins were dropped (map full): then the ends belong
 * to them.
 */
static void add_own(struct reclaim_times *all, struct reclaim_part *part, const struct gain *gain,
		    bool untracked)
{
	add_time(&part->own, &gain->time);
	all->ledger.emitted += gain->time.count + gain->time.open;
	all->ledger.emitted += untracked ? 0 : gain->time.orphans;
}

/* Whether the element belongs to another part than the one before it. */
static bool begins_part(const struct gains *gains, size_t i)
{
	const struct reclaim_key *key = &gains->items[i].key, *last = &gains->items[i - !!i].key;

	return !i || key->kind != last->kind || key->device != last->device;
}

/* Keeps the parts in which the session has events. */
static void keep_own(struct reclaim_times *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->count; i++)
		if (!is_empty(&all->items[i].own))
			all->items[n++] = all->items[i];
	all->count = n;
}

static int compare_parts(const void *a, const void *b)
{
	const struct reclaim_part *x = a, *y = b;

	if (x->own.time_ns != y->own.time_ns)
		return x->own.time_ns < y->own.time_ns ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

static int make_parts(const struct gains *gains, const struct slot_owner *owner, bool untracked,
		      struct reclaim_times *all)
{
	all->items = calloc(gains->count + 1, sizeof(*all->items));
	if (!all->items)
		return -ENOMEM;
	for (size_t i = 0; i < gains->count; i++) {
		const struct gain *gain = &gains->items[i];
		struct reclaim_part *part;

		all->count += begins_part(gains, i);
		part = &all->items[all->count - 1];
		part->kind = (enum reclaim_kind)gain->key.kind;
		part->device = gain->key.device;
		part->everybody_count += gain->time.count;
		part->everybody_ns += gain->time.time_ns;
		if (!is_empty(&gain->time) && owner->is_own(owner->context, gain->key.slot))
			add_own(all, part, gain, untracked);
	}
	keep_own(all);
	array_sort(all->items, all->count, sizeof(*all->items), compare_parts);
	for (size_t i = RECLAIM_PARTS; i < all->count; i++)
		add_time(&all->rest_time, &all->items[i].own);
	all->rest = all->count - MIN(all->count, (size_t)RECLAIM_PARTS);
	all->count -= all->rest;
	return 0;
}

/* ---- other cgroups that were short of memory */

static uint64_t sum_ns(const struct reclaim_neighbour *n)
{
	return reclaim_times_search_ns(n) + n->kind_ns[RECLAIM_THROTTLE];
}

uint64_t reclaim_times_search_ns(const struct reclaim_neighbour *n)
{
	return n->kind_ns[RECLAIM_DIRECT] + n->kind_ns[RECLAIM_LIMIT] +
	       n->kind_ns[RECLAIM_COMPACTION];
}

static int compare_neighbours(const void *a, const void *b)
{
	const struct reclaim_neighbour *x = a, *y = b;

	if (sum_ns(x) != sum_ns(y))
		return sum_ns(x) < sum_ns(y) ? 1 : -1;
	return x->row.cgroup_id < y->row.cgroup_id ? -1 : x->row.cgroup_id > y->row.cgroup_id;
}

static int compare_cgroups(const void *a, const void *b)
{
	const struct gain *x = a, *y = b;

	return x->key.cgroup_id < y->key.cgroup_id ? -1 : x->key.cgroup_id > y->key.cgroup_id;
}

/*
 * Adds to the last neighbour of the list if it is the same cgroup: the gains are sorted by cgroup.
 */
static void add_neighbour(struct reclaim_neighbour *list, size_t *count, const struct gain *gain)
{
	struct reclaim_neighbour *n;

	if (!*count || list[*count - 1].row.cgroup_id != gain->key.cgroup_id)
		list[(*count)++] =
			(struct reclaim_neighbour){ .row.cgroup_id = gain->key.cgroup_id };
	n = &list[*count - 1];
	n->count += gain->time.count;
	n->pages += gain->time.pages;
	n->kind_ns[gain->key.kind] += gain->time.time_ns;
}

static void add_to(void *sum, const void *more)
{
	struct reclaim_neighbour *to = sum;
	const struct reclaim_neighbour *n = more;

	to->count += n->count;
	to->pages += n->pages;
	for (int k = 0; k < RECLAIM_KINDS_; k++)
		to->kind_ns[k] += n->kind_ns[k];
}

/* Lists the neighbours by cgroup. Sorts the gains. */
static int list_neighbours(struct gains *gains, const struct slot_owner *owner,
			   struct reclaim_times *all)
{
	all->neighbours = calloc(gains->count + 1, sizeof(*all->neighbours));
	if (!all->neighbours)
		return -ENOMEM;
	array_sort(gains->items, gains->count, sizeof(*gains->items), compare_cgroups);
	for (size_t i = 0; i < gains->count; i++)
		if (gains->items[i].key.cgroup_id && !is_empty(&gains->items[i].time) &&
		    !owner->is_own(owner->context, gains->items[i].key.slot))
			add_neighbour(all->neighbours, &all->n_neighbours, &gains->items[i]);
	return 0;
}

void reclaim_times_close(struct reclaim_times *all, const struct neighbour_names *names)
{
	static const struct neighbour_rows_kind kind = {
		.bytes = sizeof(struct reclaim_neighbour),
		.named = RECLAIM_NEIGHBOURS,
		.compare = compare_neighbours,
		.add = add_to,
	};

	all->n_neighbours =
		neighbour_rows_make(all->neighbours, all->n_neighbours, &kind, names, &all->more);
	all->more_neighbours = all->more.row.cgroups;
}

int reclaim_times_make(const struct reclaim_reading *before, const struct reclaim_reading *now,
		       const struct slot_owner *owner, struct reclaim_times *ret_times)
{
	_cleanup_(forget_gains) struct gains gains = {};
	struct reclaim_times all = { .from_ns = before->at_ns, .to_ns = now->at_ns };
	bool untracked = now->losses.untracked != before->losses.untracked;
	struct ledger *l = &all.ledger;
	int r = find_gains(before, now, untracked, &gains);

	if (r == 0)
		r = make_parts(&gains, owner, untracked, &all);
	if (r == 0)
		r = list_neighbours(&gains, owner, &all);
	if (r < 0) {
		reclaim_times_done(&all);
		return r;
	}
	ledger_lose(l, DROP_RECLAIM_FULL,
		    counter_keys_growth(before->losses.untracked, now->losses.untracked) +
			    counter_keys_growth(before->losses.unlisted, now->losses.unlisted),
		    counter_keys_growth(before->losses.no_memory, now->losses.no_memory));
	l->attempted = l->emitted + ledger_lost(l);
	all.awake = counter_keys_growth(before->losses.awake, now->losses.awake);
	*ret_times = all;
	return 0;
}

void reclaim_times_done(struct reclaim_times *all)
{
	free(TAKE_PTR(all->items));
	for (size_t i = 0; i < all->n_neighbours; i++)
		free(all->neighbours[i].row.path);
	free(TAKE_PTR(all->neighbours));
	all->count = all->n_neighbours = 0;
}

uint64_t reclaim_times_ns(const struct reclaim_times *all, enum reclaim_kind kind)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].kind == kind)
			ns += all->items[i].own.time_ns;
	return ns;
}

struct reclaim_time reclaim_times_sum(const struct reclaim_times *all)
{
	struct reclaim_time sum = all->rest_time;

	for (size_t i = 0; i < all->count; i++)
		add_time(&sum, &all->items[i].own);
	return sum;
}
