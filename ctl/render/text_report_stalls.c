/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_stalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "shared/tools/array.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define STALLS_SHOWN 10

/* The end of the stall in a headline, after which the CPU time begins. */
#define HEADLINE_REST "of it); "

static const char *const resources[] = { "cpu", "memory", "io" };

/* Instead of a resource: threads were stuck; STORE_NO_PRESSURE: the cgroup was quiet. */
#define STUCK STORE_CAUSE_COUNT_

/* The stalls of one cgroup on one resource, or its quiet or stuck time without pressure. */
struct stall {
	uint32_t cgroup; /* a text */
	enum store_cause resource;
	uint64_t in_sessions_ms, held_ms;
	uint32_t sessions, longest; /* number of sessions; number of the longest one */
	uint64_t longest_ms;
};

struct stalls {
	struct stall *rows;
	size_t count, space;
};

static void stalls_done(struct stalls *s)
{
	free(s->rows);
}

/* Finds the row or adds it. NULL: no memory. */
static struct stall *get_row(struct stalls *s, uint32_t cgroup, enum store_cause resource)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->rows[i].cgroup == cgroup && s->rows[i].resource == resource)
			return &s->rows[i];
	if (array_reserve(&s->rows, &s->space, s->count + 1, sizeof(*s->rows)) < 0)
		return NULL;
	s->rows[s->count] = (struct stall){ .cgroup = cgroup, .resource = resource };
	return &s->rows[s->count++];
}

/* Returns the resource of an object's key `resource`; STORE_NO_PRESSURE: no known resource. */
static enum store_cause find_resource(const struct json_node *object)
{
	const struct json_node *resource = json_node_get(object, "resource");

	for (size_t i = 0; i < ARRAY_SIZE(resources); i++)
		if (json_node_equals(resource, resources[i]))
			return (enum store_cause)i;
	return STORE_NO_PRESSURE;
}

static int add_held(struct stalls *all, const struct store_session *session,
		    enum store_cause resource, uint64_t sum_ms)
{
	struct stall *row;

	if (!sum_ms || resource == STORE_NO_PRESSURE)
		return 0;
	row = get_row(all, session->cgroup, resource);
	if (!row)
		return -ENOMEM;
	row->held_ms = store_sum(row->held_ms, sum_ms);
	return 0;
}

/*
 * Finds the stall that began the session: its resource, and its length from the end line, or from
 * the trigger. False: the session began in another way.
 */
static bool find_own(const struct json_node *start, const struct json_node *end,
		     enum store_cause *ret_resource, uint64_t *ret_ms)
{
	const struct json_node *reason = json_node_get(start, "reason");
	const struct json_node *pressure = json_node_get(reason, "pressure");
	const struct json_node *quiet = json_node_get(reason, "quiet");
	const struct json_node *stuck = json_node_get(reason, "stuck");
	const struct json_node *stalled = json_node_get(end, "stalled_ms");

	*ret_resource = find_resource(pressure);
	if (*ret_resource != STORE_NO_PRESSURE)
		*ret_ms = json_node_u64(stalled ? stalled : json_node_get(pressure, "stall_ms"));
	else if (quiet)
		*ret_ms = json_node_u64(json_node_get(quiet, "measured_ms"));
	else if (stuck)
		*ret_ms = json_node_u64(json_node_get(stuck, "measured_ms"));
	if (stuck)
		*ret_resource = STUCK;
	return quiet || *ret_resource != STORE_NO_PRESSURE;
}

/* Adds the stall that began the session. */
static int add_own(struct stalls *all, const struct session_lines *s, uint32_t number)
{
	enum store_cause resource;
	uint64_t ms = 0;
	struct stall *row;

	if (!find_own(s->start, s->end, &resource, &ms))
		return 0;
	row = get_row(all, s->session->cgroup, resource);
	if (!row)
		return -ENOMEM;
	row->in_sessions_ms = store_sum(row->in_sessions_ms, ms);
	if (!row->sessions++ || ms > row->longest_ms) {
		row->longest = number;
		row->longest_ms = ms;
	}
	return 0;
}

static int add_session(struct stalls *all, const struct store *store, uint32_t number)
{
	_cleanup_(session_lines_done) struct session_lines s;
	const struct json_node *held;
	int r;

	session_lines_open(&s, store, number, NULL);
	r = add_own(all, &s, number);
	held = json_node_first(json_node_get(s.end, "held"));
	for (; r == 0 && held; held = json_node_next(held))
		r = add_held(all, s.session, find_resource(held),
			     json_node_u64(json_node_get(held, "sum_ms")));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(resources); i++)
		r = add_held(all, s.session, (enum store_cause)i, s.session->held[i].sum_ms);
	return r;
}

static uint64_t length_of(const struct stall *s)
{
	return store_sum(s->in_sessions_ms, s->held_ms);
}

static int compare_stalls(const void *a, const void *b)
{
	const struct stall *x = a, *y = b;

	if (length_of(x) != length_of(y))
		return length_of(x) < length_of(y) ? 1 : -1;
	if (x->cgroup != y->cgroup)
		return x->cgroup < y->cgroup ? -1 : 1;
	return (int)x->resource - (int)y->resource;
}

static char *format_ms(uint64_t ms, char text[TEXT_UNIT_BYTES])
{
	return text_duration_us(MIN(ms, UINT64_MAX / 1000) * 1000, text);
}

/* Prints the cause of the longest session, or the rest of its headline. */
static void put_why(const struct store *store, const struct stall *row, FILE *out)
{
	_cleanup_(session_lines_done) struct session_lines s;
	_cleanup_free_ char *headline = NULL;
	const char *rest;

	session_lines_open(&s, store, row->longest, out);
	headline = member_text_value("", json_node_get(s.end, "headline"));
	rest = headline ? strstr(headline, HEADLINE_REST) : NULL;
	if (json_node_get(s.end, "cause"))
		member_text_put(": {cause}", s.end, out);
	else if (rest)
		fprintf(out, ": %s", rest + strlen(HEADLINE_REST));
}

static void put_stall(const struct store *store, const struct stall *row, FILE *out)
{
	char all[TEXT_UNIT_BYTES], held[TEXT_UNIT_BYTES];
	const struct store_session *session = &store->sessions[row->longest];
	_cleanup_free_ char *cgroup = store_tame(store, row->cgroup);
	_cleanup_free_ char *id = row->sessions ? store_tame(store, session->id) : NULL;

	const char *what = row->resource == STUCK ? "stuck" : "quiet";
	bool pressure = row->resource < STORE_NO_PRESSURE;

	fprintf(out, "  %s %s%s in %s (", format_ms(length_of(row), all), pressure ? "on " : "",
		pressure ? resources[row->resource] : what, cgroup ? cgroup : "-");
	if (row->sessions > 1)
		fprintf(out, "%u sessions, the longest is ", row->sessions);
	else if (row->sessions)
		fputs("session ", out);
	fprintf(out, "%s", id ? id : "held back, in no session");
	if (row->sessions && row->held_ms)
		fprintf(out, "; %s of it held back", format_ms(row->held_ms, held));
	fputs(")", out);
	if (row->sessions)
		put_why(store, row, out);
	fputs("\n", out);
}

int text_report_stalls(const struct store *store, FILE *out)
{
	_cleanup_(stalls_done) struct stalls all = { 0 };
	uint32_t sessions = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->ids.count; i++) {
		if (!store->sessions[i].selected)
			continue;
		sessions++;
		r = add_session(&all, store, i);
	}
	if (r < 0 || sessions < 2 || !all.count)
		return r;
	qsort(all.rows, all.count, sizeof(*all.rows), compare_stalls);
	fprintf(out, "%u sessions; what stalled, the longest first:\n", sessions);
	for (size_t i = 0; i < MIN(all.count, (size_t)STALLS_SHOWN); i++)
		put_stall(store, &all.rows[i], out);
	section_more(out, all.count, STALLS_SHOWN);
	fputs("\n----\n\n", out);
	return 0;
}
