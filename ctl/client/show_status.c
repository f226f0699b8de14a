/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/show_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/cli/text_width.h"
#include "ctl/client/paths.h"
#include "ctl/client/show.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define LINES	   12
#define LINES_KEPT 4 /* the head, the heads of watches and sessions, the losses */
#define FAULTS_TOP 3

/* The faults found so far, a line for each. */
struct faults {
	FILE *out;
	unsigned int count;
};

/* Begins the line of a fault. */
static bool begin_fault(struct faults *f)
{
	f->count++;
	return f->out != NULL;
}

static void put_text(const struct json_node *status, const char *path, FILE *out)
{
	_cleanup_free_ char *text = member_text_value("", paths_get(status, path));

	fputs(text ? text : "-", out);
}

static void put_age(const struct json_node *status, const char *path, FILE *out)
{
	char text[TEXT_UNIT_BYTES];
	uint64_t ms = paths_number(status, path);

	fputs(text_duration_us(MIN(ms, UINT64_MAX / 1000) * 1000, text), out);
}

/* Reports a rules file that is not the active set. */
static void find_refused(const struct json_node *status, struct faults *f)
{
	uint64_t faults = paths_number(status, "rules_refused.faults");

	if (!faults || !begin_fault(f))
		return;
	fputs("the rules file was refused ", f->out);
	put_age(status, "rules_refused.age_ms", f->out);
	fprintf(f->out, " ago, the rules before it stay (%" PRIu64 " fault%s): ", faults,
		faults == 1 ? "" : "s");
	put_text(status, "rules_refused.first", f->out);
	fputs("\n", f->out);
}

static void find_no_rules(const struct json_node *status, struct faults *f)
{
	if (paths_get(status, "rules") && !paths_number(status, "rules") && begin_fault(f))
		fputs("no rules in force: nothing is watched\n", f->out);
}

static void find_no_broker(const struct json_node *status, struct faults *f)
{
	const struct json_node *there = paths_get(status, "broker.there");

	if (!there || json_node_is_true(there) || !begin_fault(f))
		return;
	fputs("no broker: ", f->out);
	put_text(status, "broker.reason", f->out);
	fputs("\n", f->out);
}

static void find_output(const struct json_node *status, struct faults *f)
{
	const struct json_node *last = paths_get(status, "output.last_error");
	uint64_t dropped = paths_number(status, "output.dropped_lines");
	uint64_t lost = paths_number(status, "output.lost_files");

	if (dropped && begin_fault(f))
		fprintf(f->out,
			"%" PRIu64 " line%s dropped: the reader of the output is too slow\n",
			dropped, dropped == 1 ? "" : "s");
	if (lost && begin_fault(f))
		fprintf(f->out,
			"the output file was deleted or replaced%s: lines before that are not in the "
			"file that is there now\n",
			lost > 1 ? " more than once" : "");
	if (!last || (json_node_is(last, JSON_INTEGER) && !json_node_i64(last)) || !begin_fault(f))
		return;
	fputs("the output cannot be written: error ", f->out);
	put_text(status, "output.last_error", f->out);
	fputs("\n", f->out);
}

static void find_unsampled(const struct json_node *status, struct faults *f)
{
	uint64_t missing = paths_number(status, "sampling.missing");

	if (!missing || !begin_fault(f))
		return;
	fprintf(f->out, "%" PRIu64 " CPU%s not sampled: ", missing, missing == 1 ? " is" : "s are");
	put_text(status, "sampling.reason", f->out);
	fputs("\n", f->out);
}

/* Reports full tables of the kernel side or of the consumer. */
static void find_full(const struct json_node *status, struct faults *f)
{
	static const struct {
		const char *path, *what;
	} tables[] = {
		{ "totals.targets_full", "the table of processes (--targets) was full" },
		{ "unwind.tables_full", "no table of unwinding was free (owners, in --all)" },
		{ "totals.events_lost", "the ring of events was full" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		uint64_t n = paths_number(status, tables[i].path);

		if (!n || !begin_fault(f))
			continue;
		fprintf(f->out, "%s, ", tables[i].what);
		if (n == 1)
			fputs("once\n", f->out);
		else
			fprintf(f->out, "%" PRIu64 " times\n", n);
	}
}

/* Reports cgroups that the agent cannot see: rules by cgroup have no effect there. */
static void find_unseen(const struct json_node *status, struct faults *f)
{
	uint64_t unreadable = paths_number(status, "cgroups.unreadable.count");

	if (unreadable && begin_fault(f)) {
		fprintf(f->out, "%" PRIu64 " cgroup%s cannot be read: error ", unreadable,
			unreadable == 1 ? "" : "s");
		put_text(status, "cgroups.unreadable.error", f->out);
		fputs(", for example ", f->out);
		put_text(status, "cgroups.unreadable.example", f->out);
		fputs("\n", f->out);
	}
	if (json_node_is_true(paths_get(status, "cgroups.cut")) && begin_fault(f))
		fputs("the cgroup hierarchy is larger than the agent lists\n", f->out);
	if (paths_get(status, "cgroups.error") && begin_fault(f)) {
		fputs("the cgroup hierarchy cannot be read: error ", f->out);
		put_text(status, "cgroups.error", f->out);
		fputs("\n", f->out);
	}
}

/* Reports cgroups that a rule matches and the loader does not allow. */
static void find_out_of_scope(const struct json_node *status, struct faults *f)
{
	uint64_t refused = paths_number(status, "scope.refused");

	if (refused && begin_fault(f))
		fprintf(f->out,
			"%" PRIu64 " time%s a cgroup outside of the loader's --scope was not "
			"watched\n",
			refused, refused == 1 ? "" : "s");
}

/* Finds the faults that an operator at 3 a.m. must not overlook, the worst first. */
static void find_faults(const struct json_node *status, struct faults *f)
{
	find_refused(status, f);
	find_no_rules(status, f);
	find_output(status, f);
	find_no_broker(status, f);
	find_unsampled(status, f);
	find_full(status, f);
	find_unseen(status, f);
	find_out_of_scope(status, f);
}

static void put_head(const struct json_node *status, unsigned int faults, FILE *out)
{
	const char *style = terminal_on(faults ? STYLE_BAD : STYLE_GOOD);

	fprintf(out, "%s%s%s: trocar ", style, faults ? "not well" : "well", terminal_off());
	put_text(status, "version", out);
	fputs(", up ", out);
	put_age(status, "uptime_ms", out);
	fprintf(out, ", pid %" PRIu64 "\n", paths_number(status, "pid"));
}

/* "2 rules", "1 watch" */
static void put_count(const struct json_node *status, const char *path, const char *one,
		      const char *many, FILE *out)
{
	uint64_t n = paths_number(status, path);

	fprintf(out, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

/*
 * Returns the stall time of the resource with the most stall of a watch: "io 4.6 s". An unreadable
 * value is not printed as "no stall".
 */
static char *name_stall(const struct json_node *watch)
{
	static const char *const resources[] = { "cpu", "memory", "io" };
	uint64_t most = 0;
	size_t which = 0;
	const struct json_node *follows;
	bool unknown = false;
	char time[TEXT_UNIT_BYTES], *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		char path[48];
		uint64_t us;

		snprintf(path, sizeof(path), "pressure.%s", resources[i]);
		follows = paths_get(watch, path);
		snprintf(path, sizeof(path), "pressure.%s.some_total_us", resources[i]);
		unknown = unknown || (follows && !paths_get(watch, path));
		us = paths_number(watch, path);
		if (us > most) {
			most = us;
			which = i;
		}
	}
	if (!most)
		return strdup(unknown ? "pressure not known" : "no stall");
	return asprintf(&text, "stalled on %s %s", resources[which], text_duration_us(most, time)) <
			       0
		       ? NULL
		       : text;
}

static char *count_of(const struct json_node *object, const char *path, const char *one,
		      const char *many)
{
	uint64_t n = paths_number(object, path);
	char *text = NULL;

	return asprintf(&text, "%" PRIu64 " %s", n, n == 1 ? one : many) < 0 ? NULL : text;
}

static void add_watch(struct text_table *table, const struct json_node *watch)
{
	text_table_add(table, member_text_value("cgroup", paths_get(watch, "cgroup")));
	text_table_add(table, member_text_value("rules", paths_get(watch, "rules")));
	text_table_add(table, name_stall(watch));
	text_table_add(table, count_of(watch, "sessions", "session", "sessions"));
}

/* "2 s ago", "for 412 ms" */
static char *name_age(const struct json_node *session)
{
	uint64_t ms = paths_number(session, "age_ms");
	bool ended = json_node_equals(paths_get(session, "state"), "ended");
	char time[TEXT_UNIT_BYTES], *text = NULL;

	text_duration_us(MIN(ms, UINT64_MAX / 1000) * 1000, time);
	return asprintf(&text, ended ? "%s ago" : "runs for %s", time) < 0 ? NULL : text;
}

static void add_session(struct text_table *table, const struct json_node *session)
{
	text_table_add(table, member_text_value("cgroup", paths_get(session, "cgroup")));
	text_table_add(table, member_text_value("session", paths_get(session, "session")));
	text_table_add(table, name_age(session));
	text_table_add(table, member_text_value("reason", paths_get(session, "reason")));
}

/* How a list is printed: at most `top` rows, and the last row may have the number of the others. */
struct rows {
	unsigned int top;
	uint32_t rigid; /* as of struct text_table */
	const char *command;
	void (*add)(struct text_table *table, const struct json_node *item);
};

static int put_list(const struct json_node *items, const struct rows *rows, FILE *out)
{
	unsigned int all = (unsigned int)json_node_elements(items), n = 0;
	unsigned int top = all > rows->top ? rows->top - 1 : rows->top;
	_cleanup_(text_table_done) struct text_table table;
	int r;

	text_table_init(&table, 4);
	table.headless = true;
	table.rigid = rows->rigid;
	for (const struct json_node *item = json_node_first(items); item && n < top;
	     item = json_node_next(item), n++)
		rows->add(&table, item);
	r = text_table_print(&table, 2, out);
	if (r == 0 && all > n)
		fprintf(out, "  and %u more: trocar %s\n", all - n, rows->command);
	return r;
}

/* Prints the lost lines, samples and events since the start, and the size of the agent. */
static void put_lost(const struct json_node *status, FILE *out)
{
	static const struct {
		const char *path, *one, *many;
	} losses[] = {
		{ "totals.lines_dropped", "line", "lines" },
		{ "totals.lines_left_out", "line left out (budget)", "lines left out (budget)" },
		{ "totals.events_lost", "event", "events" },
		{ "totals.stale_ticks", "tick while the agent was stopped",
		  "ticks while the agent was stopped" },
		{ "totals.pressure_missed", "crossing of a threshold", "crossings of thresholds" },
	};
	char bytes[TEXT_UNIT_BYTES];
	unsigned int n = 0;

	fprintf(out, "%slost%s: ", terminal_on(STYLE_HEAD), terminal_off());
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		if (!paths_number(status, losses[i].path))
			continue;
		fputs(n++ ? ", " : "", out);
		put_count(status, losses[i].path, losses[i].one, losses[i].many, out);
	}
	fputs(n ? "; " : "nothing; ", out);
	put_count(status, "output.lines", "line", "lines", out);
	fprintf(out, " written, memory %s\n",
		text_bytes(paths_number(status, "memory.resident_bytes"), bytes));
}

static int put_brief(const struct status_answers *a, unsigned int top, FILE *out)
{
	const struct rows watches = { top, 0xc, "watches", add_watch };
	const struct rows sessions = { top, 0xe, "sessions", add_session };
	int r = 0;

	fprintf(out, "%swatched%s: ", terminal_on(STYLE_HEAD), terminal_off());
	put_count(a->status, "processes", "process", "processes", out);
	fputs(" in ", out);
	put_count(a->status, "watches", "cgroup", "cgroups", out);
	fputs(", by ", out);
	put_count(a->status, "rules", "rule", "rules", out);
	fputs("\n", out);
	if (a->watches)
		r = put_list(a->watches, &watches, out);
	fprintf(out, "%ssessions%s: %" PRIu64 " since the start, %" PRIu64 " running\n",
		terminal_on(STYLE_HEAD), terminal_off(), paths_number(a->status, "sessions_total"),
		paths_number(a->status, "sessions_running"));
	if (r == 0 && a->sessions)
		r = put_list(a->sessions, &sessions, out);
	put_lost(a->status, out);
	return r;
}

/* Prints each fault as a line; without `all` cut to the width of the terminal. */
static unsigned int put_faults(char *text, unsigned int count, bool all, FILE *out)
{
	unsigned int columns = terminal_columns(UINT32_MAX), lines = 0;
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		_cleanup_free_ char *cut = strdup(line);

		if (!all && lines == FAULTS_TOP && count > FAULTS_TOP) {
			fprintf(out, "%s!%s and %u more: trocar status --all\n",
				terminal_on(STYLE_BAD), terminal_off(), count - FAULTS_TOP);
			return lines + 1;
		}
		if (cut && !all)
			cut = text_width_cut(cut, columns - 2);
		fprintf(out, "%s!%s %s\n", terminal_on(STYLE_BAD), terminal_off(),
			cut ? cut : line);
		lines++;
	}
	return lines;
}

int show_status(const struct status_answers *answers, bool all, FILE *out)
{
	_cleanup_free_ char *text = NULL;
	unsigned int lines;
	struct faults faults = { 0 };
	size_t bytes;
	int r;

	faults.out = open_memstream(&text, &bytes);
	find_faults(answers->status, &faults);
	if (!faults.out || fclose(faults.out) == EOF)
		return -ENOMEM;
	put_head(answers->status, faults.count, out);
	lines = put_faults(text, faults.count, all, out);
	r = put_brief(answers, all ? UINT32_MAX : (LINES - LINES_KEPT - lines) / 2, out);
	return r < 0 || !all ? r : show_all(answers->status, out);
}
