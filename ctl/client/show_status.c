/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/show_status.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/columns.h"
#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/cli/text_width.h"
#include "ctl/client/show.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define LINES	   12
#define LINES_KEPT 4 /* the head, the heads of watches and sessions, the losses */
#define FAULTS_TOP 3

#define TIMES(path) "[" path "=1?once][!" path "=1?{" path ":n} times]"

/*
 * The faults that an operator at 3 a.m. must not overlook, the worst first: a form for each. There
 * is one if its condition holds (member_text.h), and its member is not 0.
 */
static const struct {
	const char *condition, *form;
} faults[] = {
	{ "rules_refused.faults",
	  "the rules file was refused {rules_refused.age_ms:ms} ago, the rules before it stay "
	  "({rules_refused.faults:n} fault{rules_refused.faults:s}): {rules_refused.first}" },
	{ "rules=0", "no rules in force: nothing is watched" },
	{ "output.dropped_lines", "{output.dropped_lines:n} line{output.dropped_lines:s} dropped: "
				  "the reader of the output is too slow" },
	{ "output.lost_files",
	  "the output file was deleted or replaced[!output.lost_files=1? more than once]: lines "
	  "before that are not in the file that is there now" },
	{ "output.last_error", "the output cannot be written: error {output.last_error}" },
	{ "broker.there=false", "no broker: {broker.reason}" },
	{ "sampling.missing", "{sampling.missing:n} CPU[sampling.missing=1? is]"
			      "[!sampling.missing=1?s are] not sampled: {sampling.reason}" },
	{ "totals.targets_full",
	  "the table of processes (--targets) was full, " TIMES("totals.targets_full") },
	{ "unwind.tables_full",
	  "no table of unwinding was free (owners, in --all), " TIMES("unwind.tables_full") },
	{ "totals.events_lost", "the ring of events was full, " TIMES("totals.events_lost") },
	/* Cgroups that the agent cannot see: rules by cgroup have no effect there. */
	{ "cgroups.unreadable.count",
	  "{cgroups.unreadable.count:n} cgroup{cgroups.unreadable.count:s} cannot be read: error "
	  "{cgroups.unreadable.error}, for example {cgroups.unreadable.example}" },
	{ "cgroups.cut=true", "the cgroup hierarchy is larger than the agent lists" },
	{ "cgroups.error", "the cgroup hierarchy cannot be read: error {cgroups.error}" },
	/* Cgroups that a rule matches and the loader does not allow. */
	{ "scope.refused", "{scope.refused:n} time{scope.refused:s} a cgroup outside of the "
			   "loader's --scope was not watched" },
};

/* Prints a line for each fault; returns their number. */
static unsigned int find_faults(const struct json_node *status, FILE *out)
{
	unsigned int count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		const struct json_node *value = member_text_find(status, faults[i].condition);

		if (!member_text_holds(faults[i].condition, status) ||
		    (json_node_is(value, JSON_INTEGER) && !json_node_i64(value)))
			continue;
		count++;
		member_text_put(faults[i].form, status, out);
		fputs("\n", out);
	}
	return count;
}

static void put_head(const struct json_node *status, unsigned int count, FILE *out)
{
	const char *style = terminal_on(count ? STYLE_BAD : STYLE_GOOD);

	fprintf(out, "%s%s%s", style, count ? "not well" : "well", terminal_off());
	member_text_put(": trocar {version}, up {uptime_ms:ms}, pid {pid:n}\n", status, out);
}

/*
 * Prints the stall time of the resource with the most stall of a watch: "io 4.6 s". An unreadable
 * value is not printed as "no stall".
 */
static void put_stall(const struct json_node *watch, FILE *out)
{
	static const char *const resources[] = { "cpu", "memory", "io" };
	const struct json_node *pressure = json_node_get(watch, "pressure");
	const char *which = NULL;
	bool unknown = false;
	char time[TEXT_UNIT_BYTES];
	uint64_t most = 0;

	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		const struct json_node *follows = json_node_get(pressure, resources[i]);
		uint64_t us = member_text_number(follows, "some_total_us");

		unknown = unknown || (follows && !json_node_get(follows, "some_total_us"));
		which = us > most ? resources[i] : which;
		most = MAX(most, us);
	}
	if (which)
		fprintf(out, "stalled on %s %s", which, text_duration_us(most, time));
	else
		fputs(unknown ? "pressure not known" : "no stall", out);
}

static const struct column watches[] = {
	{ NULL, "{cgroup}" },
	{ NULL, "{rules}" },
	{ NULL, .put = put_stall, .flags = COLUMN_RIGID },
	{ NULL, "{sessions:n} session{sessions:s}", .flags = COLUMN_RIGID },
};

static const struct column sessions[] = {
	{ NULL, "{cgroup}" },
	{ NULL, "{session}", .flags = COLUMN_RIGID },
	{ NULL, "[state=ended?{age_ms:ms} ago][!state=ended?runs for {age_ms:ms}]",
	  .flags = COLUMN_RIGID },
	{ NULL, "{reason}", .flags = COLUMN_RIGID },
};

/*
 * Prints at most `max` lines of a list: the last one may have the number of the others, and the
 * command that prints them.
 */
static int put_list(const struct json_node *items, const struct column columns[4], unsigned int max,
		    const char *command, FILE *out)
{
	unsigned int all = (unsigned int)json_node_elements(items), n = 0;
	unsigned int top = all > max ? max - 1 : max;
	_cleanup_(text_table_done) struct text_table table;
	int r;

	columns_begin(&table, columns, 4);
	for (const struct json_node *item = json_node_first(items); item && n < top;
	     item = json_node_next(item), n++)
		columns_add(&table, columns, item);
	r = text_table_print(&table, 2, out);
	if (r == 0 && all > n)
		fprintf(out, "  and %u more: trocar %s\n", all - n, command);
	return r;
}

/* Prints the lost lines, samples and events since the start, and the size of the agent. */
static void put_lost(const struct json_node *status, FILE *out)
{
	static const struct {
		const char *path, *form;
	} losses[] = {
		{ "totals.lines_dropped", "{totals.lines_dropped:n} line{totals.lines_dropped:s}" },
		{ "totals.lines_left_out", "{totals.lines_left_out:n} line{totals.lines_left_out:s}"
					   " left out (budget)" },
		{ "totals.events_lost", "{totals.events_lost:n} event{totals.events_lost:s}" },
		{ "totals.stale_ticks", "{totals.stale_ticks:n} tick{totals.stale_ticks:s} while "
					"the agent was stopped" },
		{ "totals.pressure_missed",
		  "{totals.pressure_missed:n} crossing{totals.pressure_missed:s} of "
		  "[totals.pressure_missed=1?a threshold][!totals.pressure_missed=1?thresholds]" },
	};
	unsigned int n = 0;

	fprintf(out, "%slost%s: ", terminal_on(STYLE_HEAD), terminal_off());
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		if (!member_text_number(status, losses[i].path))
			continue;
		fputs(n++ ? ", " : "", out);
		member_text_put(losses[i].form, status, out);
	}
	fputs(n ? "; " : "nothing; ", out);
	member_text_put("{output.lines:n} line{output.lines:s} written, memory "
			"{memory.resident_bytes:bytes}\n",
			status, out);
}

static int put_brief(const struct status_answers *a, unsigned int top, FILE *out)
{
	int r = 0;

	fprintf(out, "%swatched%s", terminal_on(STYLE_HEAD), terminal_off());
	member_text_put(": {processes:n} process[!processes=1?es] in {watches:n} cgroup{watches:s}"
			", by {rules:n} rule{rules:s}\n",
			a->status, out);
	if (a->watches)
		r = put_list(a->watches, watches, top, "watches", out);
	fprintf(out, "%ssessions%s", terminal_on(STYLE_HEAD), terminal_off());
	member_text_put(": {sessions_total:n} since the start, {sessions_running:n} running\n",
			a->status, out);
	if (r == 0 && a->sessions)
		r = put_list(a->sessions, sessions, top, "sessions", out);
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
	unsigned int lines, count;
	size_t bytes;
	FILE *found = open_memstream(&text, &bytes);
	int r;

	if (!found)
		return -ENOMEM;
	count = find_faults(answers->status, found);
	if (fclose(found) == EOF)
		return -ENOMEM;
	put_head(answers->status, count, out);
	lines = put_faults(text, count, all, out);
	r = put_brief(answers, all ? UINT32_MAX : (LINES - LINES_KEPT - lines) / 2, out);
	return r < 0 || !all ? r : show_all(answers->status, out);
}
