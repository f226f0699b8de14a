/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/cpu/session_neighbours.h"

#include "consumer/naming/frame_json.h"
#include "consumer/signals/counter_signal.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* Writes the CPU time and its share of the time of all CPUs. */
static void write_time(const struct neighbours *n, uint64_t cpu_ns, struct jsonw *w)
{
	uint64_t all_ns = MAX(n->cpus * n->lasted_ns, (uint64_t)1);

	jsonw_u64(w, "cpu_ms", cpu_ns / NSEC_PER_MSEC);
	jsonw_milli(w, "share", (int64_t)(MIN(cpu_ns, all_ns) * 1000 / all_ns));
}

static void write_named(const struct neighbours *n, const struct neighbour_time *t, struct jsonw *w)
{
	session_neighbours_write_row(&t->row, t->name, w);
	write_time(n, t->cpu_ns, w);
	jsonw_u64(w, "beside_ms", t->beside_ns / NSEC_PER_MSEC);
	if (t->comm[0])
		jsonw_string(w, "comm", t->comm);
}

void session_neighbours_write_row(const struct neighbour_row *row, const char *name,
				  struct jsonw *w)
{
	frame_json_text(w, "neighbour", row->path);
	if (!row->path)
		jsonw_string(w, "neighbour_reason", row->unnamed);
	if (!row->path && name) {
		jsonw_string(w, "name", name);
		jsonw_bool(w, "name_unverified", true);
	}
	jsonw_u64(w, "neighbour_id", row->cgroup_id);
	jsonw_u64_nonzero(w, "neighbour_uid", row->uid);
	if (row->cgroups > 1)
		jsonw_u64(w, "neighbour_cgroups", row->cgroups);
}

/* Writes the line of `t`, or the line of the rest if `t` is NULL. */
static void put_one(const struct neighbours *n, const struct neighbour_time *t,
		    const struct event_lines *lines, const struct event_subject *subject)
{
	struct jsonw w;

	event_line_begin(lines, &w, "neighbour", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_NEIGHBOURS));
	if (t) {
		write_named(n, t, &w);
	} else {
		jsonw_u64(&w, "others", n->rest);
		write_time(n, n->rest_ns, &w);
	}
	event_line_end(lines, &w);
}

void session_neighbours_put(const struct session_result *s, const struct event_lines *lines,
			    const struct event_subject *subject)
{
	const struct neighbours *n = neighbours_of(s->signals);

	if (!n)
		return;
	for (size_t i = 0; i < n->count; i++)
		put_one(n, &n->items[i], lines, subject);
	if (n->rest)
		put_one(n, NULL, lines, subject);
}

/* Returns the CPU time without ticks: some machines count no ticks for an idle CPU. */
static uint64_t find_unseen_ns(const struct neighbours *n)
{
	uint64_t all_ns = n->cpus * n->lasted_ns, seen_ns = n->own_ns + n->others_ns + n->idle_ns;

	return all_ns - MIN(all_ns, seen_ns);
}

static void write_cpu(const struct neighbours *n, struct jsonw *w)
{
	jsonw_u64(w, "cpus", n->cpus);
	jsonw_u64(w, "own_ms", n->own_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "own_cpus", n->own_cpus);
	jsonw_u64(w, "beside_ms", n->beside_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "others_ms", n->others_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "idle_ms", n->idle_ns / NSEC_PER_MSEC);
	jsonw_u64(w, "unseen_ms", find_unseen_ns(n) / NSEC_PER_MSEC);
	if (n->unlisted_ns)
		jsonw_u64(w, "unlisted_ms", n->unlisted_ns / NSEC_PER_MSEC);
	if (n->hidden_ns)
		jsonw_u64(w, "out_of_scope_ms", n->hidden_ns / NSEC_PER_MSEC);
	jsonw_object_end(w);
}

void session_neighbours_write_cpu(const struct session_result *s, struct jsonw *w)
{
	const struct signal *signal = s->signals[SIGNAL_NEIGHBOURS];
	const struct neighbours *n = neighbours_of(s->signals);

	if (signal && counter_signal_write_begin("cpu", n, signal->off_reason, w))
		write_cpu(n, w);
}
