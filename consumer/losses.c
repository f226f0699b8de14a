/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/losses.h"

#include <string.h>

#include "consumer/agent.h"
#include "shared/clock.h"
#include "shared/log.h"
#include "shared/macro.h"

#define CHECK_EVERY_NS NSEC_PER_SEC

struct count {
	uint64_t count;
	int error;
};

static void fill(void *context, struct jsonw *w)
{
	const struct count *c = context;

	jsonw_u64(w, "count", c->count);
	if (c->error)
		jsonw_string(w, "error", strerrorname_np(c->error));
}

static void check_output(struct agent *a)
{
	struct losses *said = &a->losses;
	struct output_stats o;
	struct count c;

	output_stats(a->output, &o);
	/* A full disk cannot be told on that disk: stderr, once when it begins and once when it
	 * ends. */
	if (o.last_error != said->output_error) {
		if (o.last_error)
			log_error("%s: %s; lines wait in memory and are tried again",
				  a->options.output, strerror(o.last_error));
		else
			log_info("%s: can be written again", a->options.output);
		said->output_error = o.last_error;
	}
	c = (struct count){ o.write_errors - said->write_errors, 0 };
	if (c.count && !o.last_error) {
		said->write_errors = o.write_errors;
		line_error(
			&a->lines, NULL, "output_write",
			"see the room and the permissions of the output", fill, &c,
			"writing event lines failed %llu times; whole lines were kept and written "
			"again",
			(unsigned long long)c.count);
	}
	c = (struct count){ o.dropped_lines - said->dropped_lines, o.last_error };
	/* The line that says so needs room in the same queue. */
	if (c.count && o.queued_bytes < o.queue_bytes / 2) {
		said->dropped_lines = o.dropped_lines;
		line_error(&a->lines, NULL, "queue_full",
			   "the reader of the output is too slow or stands still; see --queue-kib",
			   fill, &c, "%llu event lines were dropped whole",
			   (unsigned long long)c.count);
	}
}

static void check_kernel(struct agent *a)
{
	struct losses *said = &a->losses;
	struct totals totals;
	struct count c;

	if (pins_totals(&a->pins, &totals) < 0)
		return;
	c = (struct count){ totals.events_lost - said->events_lost, 0 };
	if (!c.count)
		return;
	said->events_lost = totals.events_lost;
	line_error(
		&a->lines, NULL, "events_full",
		"load with a larger --events-ring-kib; the scan that follows finds what was missed",
		fill, &c, "%llu discovery events found no room in their ring",
		(unsigned long long)c.count);
	agent_scan_soon(a);
}

static void check_tables(struct agent *a)
{
	struct losses *said = &a->losses;
	struct count c = { a->totals.processes_full - said->processes_full, 0 };

	if (c.count) {
		said->processes_full = a->totals.processes_full;
		line_error(
			&a->lines, NULL, "targets_full", "load with a larger --targets", fill, &c,
			"%llu samples are of processes that the consumer's table had no room for: "
			"they count without module names",
			(unsigned long long)c.count);
	}
	c.count = a->totals.samples_bad + a->pins.samples.bad + a->pins.events.bad +
		  a->pins.errors.bad - said->bad_records;
	if (c.count) {
		said->bad_records += c.count;
		line_error(
			&a->lines, NULL, "bad_record",
			"loader and consumer may be of different builds: run `trocar-loader load "
			"--replace`",
			fill, &c, "%llu records of the rings were malformed and passed over",
			(unsigned long long)c.count);
	}
}

void losses_check(struct agent *a)
{
	uint64_t now_ns = clock_mono_ns();

	if (now_ns - a->losses.checked_ns < CHECK_EVERY_NS)
		return;
	a->losses.checked_ns = now_ns;
	check_output(a);
	check_kernel(a);
	check_tables(a);
}
