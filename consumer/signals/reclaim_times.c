/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/reclaim_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- what was counted in the session: the difference of two readings */

struct gain {
	struct reclaim_key key;
	struct reclaim_time time;
};

struct gains {
	struct gain *items; /* owned */
	size_t count;
};

static void forget_gains(struct gains *gains)
{
	free(gains->items);
}

/* What a counter grew by; one that was emptied meanwhile began anew. */
static uint64_t find_growth(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

static void subtract_sums(const struct reclaim_sums *before, const struct reclaim_sums *now,
			  struct reclaim_time *ret_time)
{
	*ret_time = (struct reclaim_time){
		.count = find_growth(before->count, now->count),
		.time_ns = find_growth(before->time_ns, now->time_ns),
		.whole_ns = find_growth(before->time_ns, now->time_ns),
		.longest_ns = now->longest_ns > before->longest_ns ? now->longest_ns : 0,
		.pages = find_growth(before->pages, now->pages),
		.orphans = find_growth(before->orphans, now->orphans),
	};
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		ret_time->steps[i] = find_growth(before->steps[i], now->steps[i]);
}

static bool is_same(const struct reclaim_key *a, const struct reclaim_key *b)
{
	return a->cgroup_id == b->cgroup_id && a->slot == b->slot && a->device == b->device &&
	       a->kind == b->kind;
}

static const struct reclaim_sums *find_sums(const struct reclaim_reading *read,
					    const struct reclaim_key *key)
{
	static const struct reclaim_sums none;

	for (uint32_t i = 0; i < read->n_sums; i++)
		if (is_same(&read->keys[i], key))
			return &read->sums[i];
	return &none;
}

/* Returns the element of the key, made when need be: `items` has room for all. */
static struct gain *get_gain(struct gains *gains, const struct reclaim_key *key)
{
	for (size_t i = 0; i < gains->count; i++)
		if (is_same(&gains->items[i].key, key))
			return &gains->items[i];
	gains->items[gains->count] = (struct gain){ .key = *key };
	return &gains->items[gains->count++];
}

/*
 * Adds the time of stretches whose end alone was seen: they had begun before the programs were
 * attached, and so before the session. Where some found no room, their ends look the same: then the
 * time is not known.
 */
static void add_orphans(struct gain *gain, const struct reclaim_sums *was,
			const struct reclaim_sums *is, uint64_t from_ns, bool untracked)
{
	uint64_t ends_ns = find_growth(was->orphan_ends_ns, is->orphan_ends_ns);

	if (untracked || ends_ns < gain->time.orphans * from_ns)
		return;
	gain->time.time_ns += ends_ns - gain->time.orphans * from_ns;
}

/* The tables of the kernel side hold whatever a taken-over consumer wrote: words are checked. */
static void add_sums(struct gains *gains, const struct reclaim_reading *before,
		     const struct reclaim_reading *now, bool untracked)
{
	for (uint32_t i = 0; i < now->n_sums; i++) {
		const struct reclaim_sums *was = find_sums(before, &now->keys[i]);
		struct gain *gain;

		if (now->keys[i].kind >= RECLAIM_KINDS_)
			continue;
		gain = get_gain(gains, &now->keys[i]);
		subtract_sums(was, &now->sums[i], &gain->time);
		add_orphans(gain, was, &now->sums[i], before->at_ns, untracked);
	}
}

static struct reclaim_key key_of(const struct reclaim_open_key *thread,
				 const struct reclaim_open *open)
{
	return (struct reclaim_key){ .cgroup_id = open->cgroup_id,
				     .slot = open->slot,
				     .device = open->device,
				     .kind = thread->kind };
}

/* Whether a reading has the same stretch. */
static bool has_open(const struct reclaim_reading *read, const struct reclaim_open_key *thread,
		     const struct reclaim_open *open)
{
	for (uint32_t i = 0; i < read->n_open; i++)
		if (read->open_keys[i].tid == thread->tid &&
		    read->open_keys[i].kind == thread->kind &&
		    read->open[i].since_ns == open->since_ns)
			return true;
	return false;
}

/* Adds the stretches that are not over, since they or the session began. */
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
		gain = get_gain(gains, &key);
		gain->time.open++;
		gain->time.open_ns += ns;
		gain->time.time_ns += ns;
	}
}

/* Takes off what was before the session of stretches that ended in it. */
static void clip_begin(struct gains *gains, const struct reclaim_reading *before,
		       const struct reclaim_reading *now)
{
	for (uint32_t i = 0; i < before->n_open; i++) {
		const struct reclaim_key key = key_of(&before->open_keys[i], &before->open[i]);
		uint64_t ns = before->at_ns - MIN(before->open[i].since_ns, before->at_ns);
		struct gain *gain;

		if (key.kind >= RECLAIM_KINDS_ ||
		    has_open(now, &before->open_keys[i], &before->open[i]))
			continue;
		gain = get_gain(gains, &key);
		gain->time.time_ns -= MIN(ns, gain->time.time_ns);
	}
}

static int find_gains(const struct reclaim_reading *before, const struct reclaim_reading *now,
		      bool untracked, struct gains *ret_gains)
{
	size_t most = (size_t)now->n_sums + now->n_open + before->n_open + 1;

	*ret_gains = (struct gains){ .items = calloc(most, sizeof(struct gain)) };
	if (!ret_gains->items)
		return -ENOMEM;
	add_sums(ret_gains, before, now, untracked);
	add_open(ret_gains, before, now);
	clip_begin(ret_gains, before, now);
	return 0;
}

/* ---- the session's own */

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

static bool is_empty(const struct reclaim_time *t)
{
	return !t->count && !t->open && !t->orphans;
}

static struct reclaim_part *find_part(const struct reclaim_times *all,
				      const struct reclaim_key *key)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].kind == key->kind && all->items[i].device == key->device)
			return &all->items[i];
	return NULL;
}

/* An end without a begin is a stretch of its own, unless stretches found no room: then it is
 * theirs. */
static void add_own(struct reclaim_times *all, const struct gain *gain, bool untracked)
{
	struct reclaim_part *part = find_part(all, &gain->key);

	if (!part) {
		part = &all->items[all->count++];
		part->kind = (enum reclaim_kind)gain->key.kind;
		part->device = gain->key.device;
	}
	add_time(&part->own, &gain->time);
	all->ledger.emitted += gain->time.count + gain->time.open;
	all->ledger.emitted += untracked ? 0 : gain->time.orphans;
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

static int make_parts(const struct gains *gains, const struct reclaim_names *names, bool untracked,
		      struct reclaim_times *all)
{
	all->items = calloc(gains->count + 1, sizeof(*all->items));
	if (!all->items)
		return -ENOMEM;
	for (size_t i = 0; i < gains->count; i++)
		if (!is_empty(&gains->items[i].time) &&
		    names->is_own(names->context, gains->items[i].key.slot))
			add_own(all, &gains->items[i], untracked);
	for (size_t i = 0; i < gains->count; i++) {
		struct reclaim_part *part = find_part(all, &gains->items[i].key);

		if (!part)
			continue;
		part->everybody_count += gains->items[i].time.count;
		part->everybody_ns += gains->items[i].time.time_ns;
	}
	if (all->count)
		qsort(all->items, all->count, sizeof(*all->items), compare_parts);
	for (size_t i = RECLAIM_PARTS; i < all->count; i++)
		add_time(&all->rest_time, &all->items[i].own);
	all->rest = all->count - MIN(all->count, (size_t)RECLAIM_PARTS);
	all->count -= all->rest;
	return 0;
}

/* ---- who else was short of memory */

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
	return x->cgroup_id < y->cgroup_id ? -1 : x->cgroup_id > y->cgroup_id;
}

static void add_neighbour(struct reclaim_neighbour *list, size_t *count, const struct gain *gain)
{
	struct reclaim_neighbour *n = list;

	while (n < list + *count && n->cgroup_id != gain->key.cgroup_id)
		n++;
	if (n == list + *count)
		list[(*count)++] = (struct reclaim_neighbour){ .cgroup_id = gain->key.cgroup_id };
	n->count += gain->time.count;
	n->pages += gain->time.pages;
	n->kind_ns[gain->key.kind] += gain->time.time_ns;
}

/* Keeps the first of the sorted list, and the sum of the rest. */
static void keep_neighbours(const struct reclaim_names *names, const struct reclaim_neighbour *list,
			    size_t count, struct reclaim_times *all)
{
	for (size_t i = 0; i < count; i++) {
		if (i < RECLAIM_NEIGHBOURS) {
			all->neighbours[i] = list[i];
			all->neighbours[i].path = names->path(names->context, list[i].cgroup_id);
			all->n_neighbours++;
			continue;
		}
		all->more_neighbours++;
		all->more.count += list[i].count;
		all->more.pages += list[i].pages;
		for (int k = 0; k < RECLAIM_KINDS_; k++)
			all->more.kind_ns[k] += list[i].kind_ns[k];
	}
}

static int make_neighbours(const struct gains *gains, const struct reclaim_names *names,
			   struct reclaim_times *all)
{
	_cleanup_free_ struct reclaim_neighbour *list = calloc(gains->count + 1, sizeof(*list));
	size_t count = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < gains->count; i++)
		if (gains->items[i].key.cgroup_id && !is_empty(&gains->items[i].time) &&
		    !names->is_own(names->context, gains->items[i].key.slot))
			add_neighbour(list, &count, &gains->items[i]);
	if (count)
		qsort(list, count, sizeof(*list), compare_neighbours);
	keep_neighbours(names, list, count, all);
	return 0;
}

int reclaim_times_make(const struct reclaim_reading *before, const struct reclaim_reading *now,
		       const struct reclaim_names *names, struct reclaim_times *ret_times)
{
	_cleanup_(forget_gains) struct gains gains = {};
	struct reclaim_times all = { .from_ns = before->at_ns, .to_ns = now->at_ns };
	bool untracked = now->losses.untracked != before->losses.untracked;
	struct ledger *l = &all.ledger;
	int r = find_gains(before, now, untracked, &gains);

	if (r == 0)
		r = make_parts(&gains, names, untracked, &all);
	if (r == 0)
		r = make_neighbours(&gains, names, &all);
	if (r < 0) {
		reclaim_times_done(&all);
		return r;
	}
	ledger_lose(l, DROP_RECLAIM_FULL,
		    find_growth(before->losses.untracked, now->losses.untracked) +
			    find_growth(before->losses.unlisted, now->losses.unlisted),
		    find_growth(before->losses.no_memory, now->losses.no_memory));
	l->attempted = l->emitted + ledger_lost(l);
	all.awake = find_growth(before->losses.awake, now->losses.awake);
	*ret_times = all;
	return 0;
}

void reclaim_times_done(struct reclaim_times *all)
{
	free(TAKE_PTR(all->items));
	for (size_t i = 0; i < all->n_neighbours; i++)
		free(TAKE_PTR(all->neighbours[i].path));
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
