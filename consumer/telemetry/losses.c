/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/telemetry/losses.h"

#include <stddef.h>
#include <string.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/telemetry/telemetry.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

#define CHECK_EVERY_NS NSEC_PER_SEC

struct count {
	uint64_t count;
	int error;
};

static void fill_line(void *context, struct jsonw *w)
{
	const struct count *c = context;

	jsonw_u64(w, "count", c->count);
	if (c->error)
		jsonw_string(w, "error", strerrorname_np(c->error));
}

static void check_output(struct losses *said)
{
	const struct telemetry *t = said->telemetry;
	struct output_queue_stats o;
	struct count c;

	output_queue_stats(t->output, &o);
	/*
	 * A full disk cannot take the line about it: write to stderr, once when it begins and once
	 * when it ends.
	 */
	if (o.last_error != said->output_error) {
		if (o.last_error)
			log_error("%s: %s; lines wait in memory and are tried again", said->output,
				  strerror(o.last_error));
		else
			log_info("%s: can be written again", said->output);
		said->output_error = o.last_error;
	}
	c = (struct count){ o.write_errors - said->write_errors, 0 };
	if (c.count && !o.last_error) {
		said->write_errors = o.write_errors;
		event_line_error(
			t->log->lines, NULL, "output_write",
			"check the free space and the permissions of the output", fill_line, &c,
			"writing event lines failed %llu times; whole lines were kept and written "
			"again",
			(unsigned long long)c.count);
	}
	c = (struct count){ o.lost_files - said->lost_files, 0 };
	if (c.count) {
		said->lost_files = o.lost_files;
		log_warning("%s: it was deleted or replaced, and was opened again", said->output);
		event_line_error(
			t->log->lines, NULL, "output_gone",
			"rotate the file by renaming it and sending SIGHUP; lines before this one are in "
			"the old file",
			fill_line, &c,
			"the output file was deleted or replaced; it was opened again");
	}
	c = (struct count){ o.dropped_lines - said->dropped_lines, o.last_error };
	/* The line needs space in the very queue that it reports the losses of. */
	if (c.count && o.queued_bytes < o.queue_bytes / 2) {
		said->dropped_lines = o.dropped_lines;
		event_line_error(
			t->log->lines, NULL, "queue_full",
			"the reader of the output is too slow or has stopped; see --queue-kib",
			fill_line, &c, "%llu event lines were dropped whole",
			(unsigned long long)c.count);
	}
}

static const struct {
	size_t offset;
	const char *code, *hint, *message; /* printed after the number */
} event_rows[] = {
	{ offsetof(struct totals, events_lost), "events_full",
	  "load with a larger --events-ring-kib; the scan that follows finds the missed ones",
	  "discovery events did not fit into their ring" },
	{ offsetof(struct totals, events_limited), "events_limited",
	  "find which process changes so often, and make the rule narrower; the scan that follows finds the last state",
	  "renames of processes, or fillings of cgroups, beyond four of each in a second were not "
	  "reported" },
	{ offsetof(struct totals, events_over_quota), "events_over_quota",
	  "find the program that starts so many processes, and make the rule narrower, or load "
	  "with a larger --events-ring-kib; the scan that follows finds missed processes",
	  "starts and renames exceeded their user's or cgroup's part of the events ring" },
	{ offsetof(struct totals, events_shed), "events_shed",
	  "load with a larger --events-ring-kib; the scan that follows finds the missed ones",
	  "discovery events were dropped to leave space for starts" },
};
_Static_assert(ARRAY_SIZE(event_rows) == LOSSES_EVENTS, "a row per kind");

static uint64_t event_count(const struct totals *totals, size_t row)
{
	uint64_t count;

	memcpy(&count, (const char *)totals + event_rows[row].offset, sizeof(count));
	return count;
}

static void say_events(struct losses *said, const struct totals *totals)
{
	const struct telemetry *t = said->telemetry;

	for (size_t i = 0; i < ARRAY_SIZE(event_rows); i++) {
		uint64_t now = event_count(totals, i);
		struct count c = { now - said->events[i], 0 };

		if (!c.count)
			continue;
		said->events[i] = now;
		event_line_error(t->log->lines, NULL, event_rows[i].code, event_rows[i].hint,
				 fill_line, &c, "%llu %s", (unsigned long long)c.count,
				 event_rows[i].message);
	}
}

/*
 * Writes lines about lost discovery events, at most once in SCHEDULE_REPAIR_NS, and schedules a
 * scan; the drain of that scan writes the rest.
 */
static void check_events(struct losses *said, uint64_t now_ns)
{
	const struct telemetry *t = said->telemetry;
	uint64_t all = 0, all_said = 0;
	struct totals totals;

	if (pinned_maps_totals(t->pins, &totals) < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(event_rows); i++) {
		all += event_count(&totals, i);
		all_said += said->events[i];
	}
	if (all != all_said &&
	    (!said->events_ns || now_ns - said->events_ns >= SCHEDULE_REPAIR_NS)) {
		said->events_ns = now_ns;
		say_events(said, &totals);
		all_said = all;
	}
	if (all != all_said || all != said->events_asked)
		schedule_repair_soon(said->schedule);
	said->events_asked = all;
}

static void check_matches(struct losses *said)
{
	const struct telemetry *t = said->telemetry;
	struct count c = { t->counts->matches_full - said->matches_full, 0 };

	if (!c.count)
		return;
	said->matches_full = t->counts->matches_full;
	event_line_error(
		t->log->lines, NULL, "targets_full",
		"make the rules narrower, or load with a larger --targets", fill_line, &c,
		"%llu matched processes did not fit into the consumer's table: they are not "
		"followed until a later scan finds space",
		(unsigned long long)c.count);
}

static void check_tables(struct losses *said)
{
	const struct telemetry *t = said->telemetry;
	struct count c = { t->counts->processes_full - said->processes_full, 0 };
	struct symbols_stats symbols;

	check_matches(said);
	if (c.count) {
		said->processes_full = t->counts->processes_full;
		event_line_error(
			t->log->lines, NULL, "targets_full", "load with a larger --targets",
			fill_line, &c,
			"%llu samples are of processes that did not fit into the consumer's table: "
			"they count without module names",
			(unsigned long long)c.count);
	}
	symbols_stats(t->symbols, &symbols);
	c.count = symbols.modules_refused - said->modules_refused;
	if (c.count) {
		said->modules_refused = symbols.modules_refused;
		event_line_error(
			t->log->lines, NULL, "modules_full",
			"watch fewer programs: make the rules narrower", fill_line, &c,
			"%llu mappings are of files beyond the %u that the consumer knows at a time: "
			"their frames have no module",
			(unsigned long long)c.count, SYMBOLS_MODULES_MAX);
	}
	c.count = t->counts->bad_records + t->pins->samples.bad + t->pins->events.bad +
		  t->pins->errors.bad - said->bad_records;
	if (c.count) {
		said->bad_records += c.count;
		event_line_error(
			t->log->lines, NULL, "bad_record",
			"loader and consumer may be of different builds: run `trocar-loader load "
			"--replace`",
			fill_line, &c, "%llu records of the rings were malformed and skipped",
			(unsigned long long)c.count);
	}
}

void losses_check(struct losses *said)
{
	uint64_t now_ns = clock_mono_ns();

	if (now_ns - said->checked_ns < CHECK_EVERY_NS)
		return;
	said->checked_ns = now_ns;
	check_output(said);
	check_events(said, now_ns);
	check_tables(said);
}
