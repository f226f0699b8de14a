/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/session_queue.h"

#include <stdio.h>
#include <string.h>

#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/naming/frame_json.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define TAIL_BYTES 8 /* "]}" and the newline */
#define POOLS_PUT  8 /* histograms of pools; `all` covers the rest too */

/* Writes as many as fit into the line, the longest first. */
static void write_longest(const struct queue_waits *q, struct jsonw *w)
{
	jsonw_array(w, "longest");
	for (size_t i = 0; i < q->n_longest; i++) {
		const struct queue_longest *one = &q->longest[i];
		struct jsonw_mark mark = jsonw_mark(w);

		jsonw_object(w, NULL);
		jsonw_u64(w, "wait_ns", one->wait_ns);
		jsonw_u64(w, "end_mono_ns", one->end_ns);
		jsonw_u64(w, "pid", one->tgid);
		jsonw_u64(w, "tid", one->tid);
		jsonw_string_n(w, "comm", one->comm, strnlen(one->comm, COMM_BYTES));
		jsonw_object_end(w);
		if (jsonw_end(w) == 0 && w->bytes + TAIL_BYTES <= w->max_bytes)
			continue;
		jsonw_rewind(w, mark);
		break;
	}
	jsonw_array_end(w);
}

static void write_key(const struct thread_pool *p, struct jsonw *w)
{
	jsonw_object(w, "key");
	jsonw_string(w, "of", p ? "pool" : "all");
	if (p) {
		jsonw_u64(w, "pid", p->tgid);
		jsonw_u64(w, "start_ns", p->start_ns);
		jsonw_string_n(w, "pool", p->name, strnlen(p->name, COMM_BYTES));
	}
	jsonw_object_end(w);
}

/* Writes the line of a pool, or of all threads if it is NULL. */
static void put_histogram(const struct queue_waits *q, const struct thread_pool *p,
			  const struct event_lines *lines, const struct event_subject *subject)
{
	struct jsonw w;

	event_line_begin(lines, &w, "histogram", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_RUNQ));
	write_key(p, &w);
	queue_histogram_write(p ? &p->queue : &q->pools.all.queue, &w);
	if (!p)
		write_longest(q, &w);
	event_line_end(lines, &w);
}

/* Returns the named pool with the most waiting for a CPU that is not yet in `put`, or NULL. */
static const struct thread_pool *find_pool(const struct thread_pools *pools, uint64_t put)
{
	const struct thread_pool *most = NULL;

	for (size_t i = 0; i < MIN(pools->count, (size_t)THREAD_POOLS_NAMED); i++) {
		const struct thread_pool *p = &pools->items[i];

		if (put & 1ull << i || !p->tgid || !queue_histogram_count(&p->queue))
			continue;
		if (!most ||
		    queue_histogram_sum_ns(&p->queue) > queue_histogram_sum_ns(&most->queue))
			most = p;
	}
	return most;
}

/* Writes the CPU's time and its share of all waits. */
static void write_time(const struct queue_waits *q, uint64_t ns, struct jsonw *w)
{
	uint64_t all_ns = MAX(queue_histogram_sum_ns(&q->pools.all.queue), (uint64_t)1);

	jsonw_u64(w, "queue_ms", ns / NSEC_PER_MSEC);
	jsonw_milli(w, "share", (int64_t)(MIN(ns, all_ns) * 1000 / all_ns));
}

/* Writes the line of `one`, or the line of the rest if it is NULL. */
static void put_blamed(const struct queue_waits *q, const struct queue_blamed *one,
		       const struct event_lines *lines, const struct event_subject *subject)
{
	struct jsonw w;

	event_line_begin(lines, &w, "neighbour", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_RUNQ));
	if (one) {
		session_neighbours_write_row(&one->row, NULL, &w);
		write_time(q, one->ns, &w);
	} else {
		jsonw_u64(&w, "others", q->blame.rest);
		write_time(q, q->blame.rest_ns, &w);
	}
	event_line_end(lines, &w);
}

void session_queue_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject)
{
	const struct queue_waits *q = queue_waits_of(s->signals);
	uint64_t put = 0;

	if (!q)
		return;
	put_histogram(q, NULL, lines, subject);
	for (int i = 0; i < POOLS_PUT; i++) {
		const struct thread_pool *p = find_pool(&q->pools, put);

		if (!p)
			break;
		put |= 1ull << (p - q->pools.items);
		put_histogram(q, p, lines, subject);
	}
	for (size_t i = 0; i < q->blame.count; i++)
		put_blamed(q, &q->blame.items[i], lines, subject);
	if (q->blame.rest)
		put_blamed(q, NULL, lines, subject);
}

int session_queue_headline(const struct session_result *s, char *text, size_t space)
{
	const struct queue_waits *q = queue_waits_of(s->signals);
	uint64_t all_ns = q ? queue_histogram_sum_ns(&q->pools.all.queue) : 0;
	const struct queue_blamed *first = q ? q->blame.items : NULL;

	if (!all_ns || !q->blame.count || !first->row.path || first->ns < all_ns / 4)
		return 0;
	return snprintf(text, space, ", %llu of %llu ms behind %.256s",
			(unsigned long long)(first->ns / NSEC_PER_MSEC),
			(unsigned long long)(all_ns / NSEC_PER_MSEC), first->row.path);
}
