/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/time/session_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/time/call_names.h"
#include "consumer/evidence/time/call_times.h"
#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"
#include "shared/tools/array.h"
#include "shared/tools/macro.h"

#define CALLS_PUT	20
#define CALL_HISTOGRAMS 8 /* for the calls with the most time */

/* Writes `call`, and its number or the reason for a missing number. */
static void write_call(uint32_t call, struct jsonw *w)
{
	const char *name = call_names_get(call);

	jsonw_string(w, "call", name);
	if (call == ACCOUNT_CALL_NONE)
		jsonw_string(w, "call_reason", "outside of system calls: page faults, stops");
	else if (call == ACCOUNT_CALL_KERNEL)
		jsonw_string(w, "call_reason", "kernel threads, and workers in the kernel");
	else if (call == ACCOUNT_CALL_COMPAT)
		jsonw_string(w, "call_reason", "processes of 32 bits have other numbers");
	else if (!name)
		jsonw_string(w, "call_reason", "a newer system call than this version knows");
	if (call < ACCOUNT_CALL_COMPAT)
		jsonw_u64(w, "number", call);
}

static void write_longest(const struct call_time *t, struct jsonw *w)
{
	if (!t->longest_ns)
		return;
	jsonw_object(w, "longest");
	jsonw_u64(w, "wait_ns", t->longest_ns);
	jsonw_bool(w, "open", !t->longest_end_ns);
	jsonw_u64(w, "pid", t->longest_tgid);
	jsonw_u64(w, "tid", t->longest_tid);
	jsonw_string_n(w, "comm", t->longest_comm, strnlen(t->longest_comm, COMM_BYTES));
	jsonw_object_end(w);
}

/* Converts the counts to the buckets of time_histogram.h. */
static void widen_counts(const struct call_time *t, uint64_t counts[QUEUE_BUCKETS])
{
	for (int i = 0; i < QUEUE_BUCKETS; i++)
		counts[i] = t->buckets[i];
}

/* Writes the bounds of the finished waits. */
static void write_bounds(const struct call_time *t, struct jsonw *w)
{
	static const struct {
		const char *key;
		unsigned int pct;
	} bounds[] = { { "p50_ns", 50 }, { "p90_ns", 90 }, { "p99_ns", 99 } };
	uint64_t counts[QUEUE_BUCKETS];

	if (!t->waits)
		return;
	widen_counts(t, counts);
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++)
		time_histogram_write_percentile(bounds[i].key, counts, bounds[i].pct, w);
}

/* Contents of one line. */
struct row {
	struct call_time waited;
	uint64_t samples, weight_ns; /* of CPU time in the call */
};

struct rows {
	struct row *items; /* owned */
	size_t count;
};

/* Sorts the most time first: waiting in the call plus running in it. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	uint64_t x_ns = x->waited.wait_ns + x->weight_ns, y_ns = y->waited.wait_ns + y->weight_ns;

	if (x_ns != y_ns)
		return x_ns < y_ns ? 1 : -1;
	return x->waited.call < y->waited.call ? -1 : x->waited.call > y->waited.call;
}

static bool has_waits(const struct call_times *times, uint32_t call)
{
	for (size_t i = 0; i < times->count; i++)
		if (times->items[i].call == call)
			return true;
	return false;
}

/* Makes a row of each system call that threads waited or ran in. 0 or -ENOMEM. */
static int join_rows(const struct call_times *times, const struct session_cpu *cpu,
		     struct rows *ret_rows)
{
	struct rows rows = { .items = calloc(times->count + cpu->count + 1, sizeof(*rows.items)) };

	if (!rows.items)
		return -ENOMEM;
	for (size_t i = 0; i < times->count; i++) {
		struct row *row = &rows.items[rows.count++];

		row->waited = times->items[i];
		row->samples = session_cpu_of(cpu, row->waited.call, &row->weight_ns);
	}
	for (size_t i = 0; i < cpu->count; i++) {
		if (has_waits(times, cpu->of[i].call))
			continue;
		rows.items[rows.count++] = (struct row){ .waited.call = cpu->of[i].call,
							 .samples = cpu->of[i].samples,
							 .weight_ns = cpu->of[i].weight_ns };
	}
	array_sort(rows.items, rows.count, sizeof(*rows.items), compare_rows);
	*ret_rows = rows;
	return 0;
}

/* Writes the line of a row; if `others` is not 0, the row is the sum of that many calls. */
static void put_row(const struct row *row, const struct session_cpu *cpu, uint64_t others,
		    const struct event_lines *lines, const struct event_subject *subject)
{
	const struct call_time *t = &row->waited;
	struct jsonw w;

	event_line_begin(lines, &w, "syscall", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_SYSCALL));
	if (others)
		jsonw_u64(&w, "others", others);
	else
		write_call(t->call, &w);
	jsonw_u64(&w, "waits", t->waits);
	jsonw_u64(&w, "open", t->open);
	jsonw_u64(&w, "wait_ns", t->wait_ns);
	if (cpu->all) {
		jsonw_u64(&w, "cpu_samples", row->samples);
		jsonw_milli(&w, "cpu_share", (int64_t)(row->samples * 1000 / cpu->all));
	}
	if (!others) {
		write_bounds(t, &w);
		write_longest(t, &w);
	}
	event_line_end(lines, &w);
}

static void put_histogram(const struct call_time *t, const struct event_lines *lines,
			  const struct event_subject *subject)
{
	uint64_t counts[QUEUE_BUCKETS];
	struct jsonw w;

	if (!t->waits)
		return;
	widen_counts(t, counts);
	event_line_begin(lines, &w, "histogram", subject);
	jsonw_string(&w, "signal", rules_signal_name(SIGNAL_SYSCALL));
	jsonw_object(&w, "key");
	jsonw_string(&w, "of", "call");
	write_call(t->call, &w);
	jsonw_object_end(&w);
	time_histogram_write(counts, t->over_ns, &w);
	event_line_end(lines, &w);
}

static void put_rows(const struct rows *rows, const struct session_cpu *cpu,
		     const struct event_lines *lines, const struct event_subject *subject)
{
	struct row rest = { .samples = cpu->of_others };

	for (size_t i = 0; i < rows->count; i++) {
		const struct row *row = &rows->items[i];

		if (i < CALLS_PUT) {
			put_row(row, cpu, 0, lines, subject);
			continue;
		}
		rest.waited.waits += row->waited.waits;
		rest.waited.open += row->waited.open;
		rest.waited.wait_ns += row->waited.wait_ns;
		rest.samples += row->samples;
	}
	if (rows->count > CALLS_PUT)
		put_row(&rest, cpu, rows->count - CALLS_PUT, lines, subject);
	for (size_t i = 0; i < MIN(rows->count, (size_t)CALL_HISTOGRAMS); i++)
		put_histogram(&rows->items[i].waited, lines, subject);
}

void session_calls_put(const struct session_result *s, const struct session_cpu *cpu,
		       const struct event_lines *lines, const struct event_subject *subject)
{
	const struct call_times *times = call_times_of(s->signals);
	struct rows rows;

	if (!times)
		return;
	if (join_rows(times, cpu, &rows) < 0) {
		event_line_error(lines, NULL, "queue_full", "give the agent more memory", NULL,
				 NULL, "no memory to write the system calls of the session in %s",
				 s->cgroup);
		return;
	}
	put_rows(&rows, cpu, lines, subject);
	free(rows.items);
}

void session_calls_write(const struct stack *stack, struct jsonw *w)
{
	const char *name = call_names_get(stack->call);

	if (!(stack->flags & SAMPLE_IN_USER) && name)
		jsonw_string(w, "call", name);
	if (stack->flags & SAMPLE_MEMORY_STALL)
		jsonw_bool(w, "memory_stall", true);
}
