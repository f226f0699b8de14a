/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/memory/session_reclaim.h"

#include <stdio.h>
#include <unistd.h>

#include "consumer/evidence/cpu/session_neighbours.h"
#include "consumer/facts/disk_text.h"
#include "consumer/naming/frame_json.h"
#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* Members that the lines of a session share. */
struct reclaim_lines {
	const struct event_lines *lines;
	const struct event_subject *subject;
	const struct facts_disks *disks;
};

static void begin_line(const struct reclaim_lines *r, const char *type, struct jsonw *w)
{
	event_line_begin(r->lines, w, type, r->subject);
	jsonw_string(w, "signal", rules_signal_name(SIGNAL_RECLAIM));
}

static uint64_t bytes_of(uint64_t pages)
{
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void write_time(const struct reclaim_time *t, struct jsonw *w)
{
	jsonw_u64(w, "count", t->count);
	jsonw_u64(w, "time_ns", t->time_ns);
	jsonw_u64_nonzero(w, "longest_ns", t->longest_ns);
	jsonw_u64(w, "reclaimed_bytes", bytes_of(t->pages));
	jsonw_u64_nonzero(w, "orphans", t->orphans);
	jsonw_u64(w, "open", t->open);
	if (t->open)
		jsonw_u64(w, "open_ns", t->open_ns);
}

static void put_part(const struct reclaim_lines *r, const struct reclaim_part *p)
{
	struct jsonw w;

	begin_line(r, "reclaim", &w);
	jsonw_string(&w, "kind", reclaim_times_kind_name(p->kind));
	/* The disk that is written to; 0: none. */
	if (p->device) {
		disk_text_write_name(r->disks, p->device, &w);
		disk_text_write_number(p->device, &w);
	}
	write_time(&p->own, &w);
	if (p->own.count) {
		time_histogram_write_percentile("p50", p->own.steps, 50, &w);
		time_histogram_write_percentile("p99", p->own.steps, 99, &w);
	}
	jsonw_object(&w, "everybody");
	jsonw_u64(&w, "count", p->everybody_count);
	jsonw_u64(&w, "time_ns", p->everybody_ns);
	jsonw_object_end(&w);
	event_line_end(r->lines, &w);
}

static void put_rest(const struct reclaim_lines *r, const struct reclaim_times *all)
{
	struct jsonw w;

	begin_line(r, "reclaim", &w);
	jsonw_u64(&w, "others", all->rest);
	write_time(&all->rest_time, &w);
	event_line_end(r->lines, &w);
}

static void put_histogram(const struct reclaim_lines *r, const struct reclaim_part *p)
{
	struct jsonw w;

	if (!p->own.count)
		return;
	begin_line(r, "histogram", &w);
	jsonw_object(&w, "key");
	jsonw_string(&w, "of", "reclaim");
	jsonw_string(&w, "kind", reclaim_times_kind_name(p->kind));
	if (p->device)
		disk_text_write_name(r->disks, p->device, &w);
	jsonw_object_end(&w);
	time_histogram_write(p->own.steps, p->own.whole_ns, &w);
	event_line_end(r->lines, &w);
}

/* Writes a neighbour's events: `ms` of each kind that occurred. */
static void write_done(const struct reclaim_neighbour *n, struct jsonw *w)
{
	char key[32];

	jsonw_u64(w, "stretches", n->count);
	for (int i = 0; i < RECLAIM_KINDS_; i++) {
		snprintf(key, sizeof(key), "%s_ms", reclaim_times_kind_name((enum reclaim_kind)i));
		if (n->kind_ns[i])
			jsonw_u64(w, key, n->kind_ns[i] / NSEC_PER_MSEC);
	}
	jsonw_u64(w, "reclaimed_bytes", bytes_of(n->pages));
}

static void put_neighbour(const struct reclaim_lines *r, const struct reclaim_neighbour *n)
{
	struct jsonw w;

	begin_line(r, "neighbour", &w);
	session_neighbours_write_row(&n->row, NULL, &w);
	write_done(n, &w);
	event_line_end(r->lines, &w);
}

static void put_more(const struct reclaim_lines *r, const struct reclaim_times *all)
{
	struct jsonw w;

	begin_line(r, "neighbour", &w);
	jsonw_u64(&w, "others", all->more_neighbours);
	write_done(&all->more, &w);
	event_line_end(r->lines, &w);
}

void session_reclaim_put(const struct session_result *s, const struct event_lines *lines,
			 const struct event_subject *subject)
{
	const struct reclaim_times *all = reclaim_times_of(s->signals);
	struct reclaim_lines r = { .lines = lines, .subject = subject, .disks = s->disks };

	if (!all)
		return;
	for (size_t i = 0; i < all->count; i++) {
		put_part(&r, &all->items[i]);
		put_histogram(&r, &all->items[i]);
	}
	if (all->rest)
		put_rest(&r, all);
	for (size_t i = 0; i < all->n_neighbours; i++)
		put_neighbour(&r, &all->neighbours[i]);
	if (all->more_neighbours)
		put_more(&r, all);
}
