/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_head.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/symptom.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static void put_value(const struct json_node *object, const char *key, FILE *out)
{
	_cleanup_free_ char *text = member_text_value(key, json_node_get(object, key));

	fputs(text ? text : "-", out);
}

static void put_lengths(const struct store_session *session, FILE *out)
{
	double before = (double)session->length_ms[STORE_BEFORE] / MSEC_PER_SEC;
	double onset = (double)session->length_ms[STORE_ONSET] / MSEC_PER_SEC;

	fprintf(out, "before: %.1f s, ", before);
	if (onset > 0)
		fprintf(out, "onset: %.1f s, ", onset);
	fprintf(out, "during: %.1f s\n", (double)session->length_ms[STORE_DURING] / MSEC_PER_SEC);
	if (onset > 0 && before <= 0)
		fputs("No baseline before the stall: comparing the capture with the onset.\n", out);
}

int text_report_head(const struct store *store, const struct store_session *session, FILE *out)
{
	_cleanup_free_ char *id = store_tame(store, session->id),
			    *rule = store_tame(store, session->rule);
	_cleanup_free_ char *cgroup = store_tame(store, session->cgroup);
	_cleanup_free_ char *headline = store_tame(store, session->headline);
	char when[CLOCK_TEXT_BYTES];

	if (!id || !rule || !cgroup || !headline)
		return -ENOMEM;
	clock_text(session->time_ns, when);
	fprintf(out, "%s%s%s\n", terminal_on(STYLE_HEAD),
		session->end == STORE_NONE
			? "This session has no end here: it still ran, or its lines were cut."
			: headline,
		terminal_off());
	fprintf(out, "session %s, rule %s, %.19s UTC, %s\n", id, rule, when, cgroup);
	if (session->end != STORE_NONE)
		put_lengths(session, out);
	return 0;
}

/* Returns whether a signal that was missing at the begin began in time to leave evidence. */
static bool came_late(const struct json_node *end, const char *signal)
{
	return json_node_get(json_node_get(end, "ledger"), signal) ||
	       (!strcmp(signal, "switch") && json_node_get(end, "switches"));
}

/* Prints the missing kinds of evidence, and why they are missing. */
static void put_missing(const struct json_node *start, const struct json_node *end, FILE *out)
{
	const struct json_node *one = json_node_first(json_node_get(start, "signals_missing"));

	for (; one; one = json_node_next(one)) {
		_cleanup_free_ char *signal =
			member_text_value("signal", json_node_get(one, "signal"));

		if (!signal || came_late(end, signal))
			continue;
		fprintf(out, "  without %s: ", signal);
		put_value(one, "reason", out);
		fputs("\n", out);
	}
}

static void put_quality(const struct json_node *start, const struct json_node *end, FILE *out)
{
	const struct json_node *verdict = json_node_get(end, "verdict");
	const struct json_node *advice = json_node_first(json_node_get(end, "advice"));
	bool debug_archive = false;
	enum terminal_style style = json_node_equals(verdict, "complete")  ? STYLE_GOOD
				    : json_node_equals(verdict, "partial") ? STYLE_WARN
									   : STYLE_BAD;

	fprintf(out, "\n%squality%s: %s", terminal_on(STYLE_HEAD), terminal_off(),
		terminal_on(style));
	put_value(end, "verdict", out);
	fputs(terminal_off(), out);
	if (json_node_get(end, "verdict_reason")) {
		fputs(", ", out);
		put_value(end, "verdict_reason", out);
	}
	fputs("\n", out);
	put_missing(start, end, out);
	for (; advice; advice = json_node_next(advice)) {
		_cleanup_free_ char *text = member_text_value("", advice);

		fprintf(out, "  advice: %s\n", text ? text : "-");
		debug_archive |= text && strstr(text, "(from debian-debug)");
	}
	if (debug_archive)
		fputs("  debian-debug: packages come from there with this line in "
		      "/etc/apt/sources.list, MIRROR and CODENAME as in its others: deb "
		      "MIRROR/debian-debug CODENAME-debug main\n",
		      out);
}

int text_report_head_quality(const struct store *store, const struct store_session *session,
			     FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree start_tree = { 0 }, end_tree = { 0 };
	const struct json_node *start = text_report_lines_read(store, session->start, &start_tree);
	const struct json_node *end = text_report_lines_read(store, session->end, &end_tree);

	if ((!start && session->start != STORE_NONE) || (!end && session->end != STORE_NONE))
		return -ENOMEM;
	if (end)
		put_quality(start, end, out);
	return 0;
}

static void put_held_one(const char *when, const char *what, uint64_t triggers, uint64_t sum_ms,
			 uint64_t largest_ms, FILE *out)
{
	char sum[TEXT_UNIT_BYTES], largest[TEXT_UNIT_BYTES];

	fprintf(out, "  held back %s: %s, %" PRIu64 " trigger%s", when, what, triggers,
		triggers == 1 ? "" : "s");
	if (sum_ms || largest_ms)
		fprintf(out, ", stalled for %s, at most %s at once",
			text_duration_us(MIN(sum_ms, UINT64_MAX / 1000) * 1000, sum),
			text_duration_us(MIN(largest_ms, UINT64_MAX / 1000) * 1000, largest));
	fputs("\n", out);
}

/*
 * Prints the triggers without a session of their own, which the stacks do not show: while the
 * session ran, and after it.
 */
static void put_held(const struct store_session *session, const struct json_node *end, FILE *out)
{
	static const char *const causes[] = { "cpu", "memory", "io", "without pressure" };
	const struct json_node *held = json_node_first(json_node_get(end, "held"));

	for (; held; held = json_node_next(held)) {
		const char *key = json_node_get(held, "resource") ? "resource" : "trigger";
		_cleanup_free_ char *what = member_text_value(key, json_node_get(held, key));

		put_held_one("while it ran", what ? what : "-",
			     json_node_u64(json_node_get(held, "triggers")),
			     json_node_u64(json_node_get(held, "sum_ms")),
			     json_node_u64(json_node_get(held, "largest_ms")), out);
	}
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (session->held[i].triggers)
			put_held_one("in its cooldown", causes[i], session->held[i].triggers,
				     session->held[i].sum_ms, session->held[i].largest_ms, out);
}

/*
 * Prints the time of the stall that the evidence stands for: CPU time, and waits for the stalled
 * resource. A small share proves that something else explains the stall.
 */
static void put_explained(const struct json_node *end, FILE *out)
{
	const struct json_node *explained = json_node_get(end, "explained");

	if (!explained)
		return;
	fprintf(out, "  explained: %.0f %%%s of ", 100 * json_node_double(explained),
		json_node_double(explained) < 1 ? "" : " or more");
	put_value(end, "stalled_ms", out);
	fputs(" that were stalled\n", out);
}

/* "; its rule asks for at least 200 ms in one window of 1.0 s" */
static void put_threshold(const struct json_node *pressure, FILE *out)
{
	if (!json_node_get(pressure, "threshold_ms"))
		return;
	fputs("; its rule asks for at least ", out);
	put_value(pressure, "threshold_ms", out);
	fputs(" in one window of ", out);
	put_value(pressure, "window_ms", out);
}

int text_report_head_symptom(const struct store *store, const struct store_session *session,
			     FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree start_tree = { 0 }, end_tree = { 0 },
						   pressure_tree = { 0 };
	const struct json_node *start = text_report_lines_read(store, session->start, &start_tree);
	const struct json_node *end = text_report_lines_read(store, session->end, &end_tree);
	const struct json_node *pressure =
		text_report_lines_read(store, session->pressure, &pressure_tree);

	if ((!start && session->start != STORE_NONE) || (!end && session->end != STORE_NONE) ||
	    (!pressure && session->pressure != STORE_NONE))
		return -ENOMEM;
	if (start) {
		fprintf(out, "\n%ssymptom%s: ", terminal_on(STYLE_HEAD), terminal_off());
		symptom_put(start, out);
		put_threshold(pressure, out);
		fputs("\n", out);
	}
	put_explained(end, out);
	put_held(session, end, out);
	return 0;
}
