/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/waits/session_timeline.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/time/thread_pools.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define POOLS_NAMED 16 /* the other pools share one line */

/* Bytes for the end of a line. */
#define END_BYTES 8

/* A pool with its activity, for the order of the lines. */
struct entry {
	const struct timeline_pool *pool;
	uint64_t busy_ns, all_ns;
};

static uint64_t sum_row(const struct timeline *t, const uint64_t *row)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; row && i < t->slots; i++)
		sum += row[i];
	return sum;
}

static bool is_idle(int part)
{
	return part == ACCOUNT_IDLE || part == ACCOUNT_SLEEP;
}

static struct entry measure_pool(const struct timeline *t, const struct timeline_pool *pool)
{
	struct entry e = { .pool = pool };

	for (int i = 0; i < ACCOUNT_PARTS_; i++) {
		uint64_t ns = sum_row(t, pool->ns[i]);

		e.all_ns += ns;
		e.busy_ns += is_idle(i) ? 0 : ns;
	}
	return e;
}

/* Sorts the most active first; equal activity by process and name. */
static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns < y->busy_ns ? 1 : -1;
	if (x->all_ns != y->all_ns)
		return x->all_ns < y->all_ns ? 1 : -1;
	if (x->pool->tgid != y->pool->tgid)
		return x->pool->tgid < y->pool->tgid ? -1 : 1;
	return memcmp(x->pool->name, y->pool->name, COMM_BYTES);
}

/* Returns the number of slots that the session reached. */
static uint32_t count_slots(const struct session_result *s)
{
	const struct timeline *t = s->timeline;
	uint64_t ns = s->stop_ns - MIN(s->stop_ns, t->from_ns);

	return (uint32_t)MIN((ns + t->slot_ns - 1) / t->slot_ns, (uint64_t)t->slots);
}

/* Writes the row in units, rounded up, so that a nonzero time is never written as 0. */
static void write_row(const uint64_t *row, uint32_t slots, uint64_t unit_ns, const char *key,
		      struct jsonw *w)
{
	jsonw_array(w, key);
	for (uint32_t i = 0; i < slots; i++)
		jsonw_u64(w, NULL, (row[i] + unit_ns - 1) / unit_ns);
	jsonw_array_end(w);
}

static void write_rows(const struct timeline_pool *pool, uint32_t slots, uint64_t unit_ns,
		       struct jsonw *w)
{
	jsonw_u64(w, "unit_ms", unit_ns / NSEC_PER_MSEC);
	for (int i = 0; i <= ACCOUNT_QUEUE; i++)
		if (pool->ns[i])
			write_row(pool->ns[i], slots, unit_ns,
				  thread_pools_part((enum account_part)i), w);
	jsonw_object(w, "blocked");
	for (int i = ACCOUNT_QUEUE + 1; i < ACCOUNT_PARTS_; i++)
		if (pool->ns[i])
			write_row(pool->ns[i], slots, unit_ns,
				  thread_pools_part((enum account_part)i), w);
	jsonw_object_end(w);
}

static void write_looks(const struct timeline *t, uint32_t slots, struct jsonw *w)
{
	jsonw_array(w, "looks");
	for (uint32_t i = 0; i < slots; i++)
		jsonw_u64(w, NULL, t->looks[i]);
	jsonw_array_end(w);
}

/* The length of a line is limited: times that do not fit in ms are rounded up to larger units. */
static void write_times(const struct timeline_pool *pool, uint32_t slots, struct jsonw *w)
{
	const struct jsonw_mark mark = jsonw_mark(w);

	for (uint64_t unit_ms = 1; unit_ms <= 1000; unit_ms *= 10) {
		jsonw_rewind(w, mark);
		write_rows(pool, slots, unit_ms * NSEC_PER_MSEC, w);
		if (!w->error && w->bytes + END_BYTES < w->max_bytes)
			return;
	}
}

/* `others`: number of pools that share the line; 0: the line of one pool. */
static void put_line(const struct session_result *s, const struct timeline_pool *pool,
		     uint64_t others, const struct event_lines *lines,
		     const struct event_subject *subject)
{
	const struct timeline *t = s->timeline;
	uint32_t slots = count_slots(s);
	struct jsonw w;

	event_line_begin(lines, &w, "timeline", subject);
	if (others) {
		jsonw_u64(&w, "others", others);
		if (t->crowded)
			jsonw_u64(&w, "crowded", t->crowded);
		if (t->left_out)
			jsonw_u64(&w, "left_out", t->left_out);
	} else {
		jsonw_u64(&w, "pid", pool->tgid);
		jsonw_u64(&w, "start_ns", pool->start_ns);
		jsonw_string_n(&w, "pool", pool->name, strnlen(pool->name, COMM_BYTES));
	}
	jsonw_u64(&w, "slot_ms", t->slot_ns / NSEC_PER_MSEC);
	jsonw_u64(&w, "slots", slots);
	jsonw_u64(&w, "slots_before", t->before);
	write_looks(t, slots, &w);
	write_times(pool, slots, &w);
	event_line_end(lines, &w);
}

/* Adds the times of a pool to the rest. A row without memory is missing from the rest. */
static void merge_pool(struct timeline *t, const struct timeline_pool *pool)
{
	for (int i = 0; i < ACCOUNT_PARTS_ && t->slots; i++) {
		if (!pool->ns[i])
			continue;
		if (!t->rest.ns[i])
			t->rest.ns[i] = calloc(t->slots, sizeof(uint64_t));
		if (!t->rest.ns[i]) {
			t->left_out++;
			continue;
		}
		for (uint32_t k = 0; k < t->slots; k++)
			t->rest.ns[i][k] += pool->ns[i][k];
	}
}

static size_t list_pools(const struct timeline *t, struct entry *entries)
{
	struct timeline_pool *pool;
	uint64_t hash;
	size_t n = 0;

	idmap_for_each (&t->by_hash, i, hash, pool)
		for (; pool; pool = pool->next)
			entries[n++] = measure_pool(t, pool);
	qsort(entries, n, sizeof(*entries), compare_entries);
	return n;
}

void session_timeline_put(const struct session_result *s, const struct event_lines *lines,
			  const struct event_subject *subject)
{
	struct timeline *t = s->timeline;
	_cleanup_free_ struct entry *entries = t ? calloc(t->count + 1, sizeof(*entries)) : NULL;
	size_t n, named;

	if (!entries)
		return;
	n = list_pools(t, entries);
	named = MIN(n, (size_t)POOLS_NAMED);
	for (size_t i = 0; i < named; i++)
		put_line(s, entries[i].pool, 0, lines, subject);
	for (size_t i = named; i < n; i++)
		merge_pool(t, entries[i].pool);
	if (n > named || t->crowded || t->left_out)
		put_line(s, &t->rest, MAX(n - named, (size_t)1), lines, subject);
}
