/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the first answers for an operator: the headline, the quality, the symptom. */
#include <inttypes.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "ctl/render/symptom.h"
#include "shared/tools/macro.h"

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

void text_report_head(struct session_lines *s)
{
	session_lines_head(s, terminal_on(STYLE_HEAD), terminal_off());
	if (s->end)
		put_lengths(s->session, s->out);
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
		const char *signal = json_node_string(json_node_get(one, "signal"));

		if (signal && !came_late(end, signal))
			member_text_put("  without {signal}: {reason}\n", one, out);
	}
}

static void put_advice(const struct json_node *end, FILE *out)
{
	const struct json_node *advice = json_node_first(json_node_get(end, "advice"));
	bool debug_archive = false;

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

void text_report_head_verdict(struct session_lines *s)
{
	const struct json_node *verdict = json_node_get(s->end, "verdict");
	enum terminal_style style = json_node_equals(verdict, "complete")  ? STYLE_GOOD
				    : json_node_equals(verdict, "partial") ? STYLE_WARN
									   : STYLE_BAD;

	if (!s->end)
		return;
	section_begin(s->out, "quality");
	fputs(terminal_on(style), s->out);
	member_text_put("{verdict}", s->end, s->out);
	fputs(terminal_off(), s->out);
	member_text_put("[verdict_reason?, {verdict_reason}]\n", s->end, s->out);
}

void text_report_head_quality(struct session_lines *s)
{
	text_report_head_verdict(s);
	if (!s->end)
		return;
	put_missing(s->start, s->end, s->out);
	member_text_put("[looks.other_ends.reason?  {looks.other_ends.named} of "
			"{looks.other_ends.sought} other ends of waits have a process: "
			"{looks.other_ends.reason}\n]",
			s->end, s->out);
	put_advice(s->end, s->out);
}

static void put_held_one(const char *when, const char *what, uint64_t triggers, uint64_t sum_ms,
			 uint64_t largest_ms, FILE *out)
{
	char sum[TEXT_UNIT_BYTES], largest[TEXT_UNIT_BYTES];

	fprintf(out, "  held back %s: %s, %" PRIu64 " trigger%s", when, what, triggers,
		text_s(triggers));
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

void text_report_head_symptom(struct session_lines *s)
{
	double explained = json_node_double(json_node_get(s->end, "explained"));

	if (s->start) {
		section_begin(s->out, "symptom");
		symptom_put(s->start, s->out);
		member_text_put("[threshold_ms?; its rule asks for at least {threshold_ms} in one "
				"window of {window_ms}]\n",
				s->pressure, s->out);
	}
	/*
	 * The time of the stall that the evidence stands for: CPU time, and waits for the stalled
	 * resource. A small share proves that something else explains the stall.
	 */
	if (json_node_get(s->end, "explained"))
		member_text_put(explained < 1
					? "  explained: {explained:share} of {stalled_ms} that "
					  "were stalled\n"
					: "  explained: {explained:share} or more of "
					  "{stalled_ms} that were stalled\n",
				s->end, s->out);
	put_held(s->session, s->end, s->out);
}
