/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_findings.h"

#include <errno.h>
#include <stdbool.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A smaller unexplained share is not printed. */
#define UNEXPLAINED_PCT 10

static const struct {
	const char *word, *helps;
} causes[] = {
#define FINDING(id, word, of, least, helps) { word, helps },
#include "shared/findings/findings.def"
#undef FINDING
};

static int print_finding(const struct json_node *finding, FILE *out)
{
	_cleanup_free_ char *says = member_text_value("says", json_node_get(finding, "says"));
	bool certain = json_node_is_true(json_node_get(finding, "certain"));

	if (!says)
		return -ENOMEM;
	fprintf(out, "  %s%3.0f %%%s  %s%s\n", terminal_on(STYLE_HEAD),
		100 * json_node_double(json_node_get(finding, "share")), terminal_off(),
		certain ? "" : "perhaps: ", says);
	return 0;
}

const char *text_report_findings_help(const struct json_node *finding)
{
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (json_node_equals(json_node_get(finding, "cause"), causes[i].word))
			return causes[i].helps;
	return NULL;
}

/* Prints the usual remedy, below the first finding of each cause. */
static void print_help(const struct json_node *findings, const struct json_node *finding, FILE *out)
{
	const char *helps = text_report_findings_help(finding);
	const struct json_node *before = json_node_first(findings);

	while (before != finding && text_report_findings_help(before) != helps)
		before = json_node_next(before);
	if (helps && before == finding)
		fprintf(out, "  what helps: %s\n", helps);
}

/* Prints the findings of one kind of time, below `head` if there are any. */
static int print_findings(const struct json_node *end, const char *of, const char *head, FILE *out)
{
	const struct json_node *findings = json_node_get(end, "findings");
	const struct json_node *finding = json_node_first(findings);
	int e = 0;

	for (; e == 0 && finding; finding = json_node_next(finding)) {
		if (!json_node_equals(json_node_get(finding, "of"), of))
			continue;
		fputs(head, out);
		head = "";
		e = print_finding(finding, out);
		print_help(findings, finding, out);
	}
	return e;
}

int text_report_findings(const struct store *store, const struct store_session *session, FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	uint64_t waited_ms = json_node_u64(json_node_get(end, "waited_ms"));
	double left = 100 * json_node_double(json_node_get(end, "unexplained"));
	char time[TEXT_UNIT_BYTES];
	int e;

	if (!end && session->end != STORE_NONE)
		return -ENOMEM;
	if (!json_node_get(end, "findings"))
		return 0;
	text_duration_us(waited_ms * (NSEC_PER_MSEC / NSEC_PER_USEC), time);
	if (!json_node_first(json_node_get(end, "findings")) &&
	    json_node_get(end, "findings_more")) {
		section_head(
			out, "findings",
			"causes omitted: the line was full (trocar-consumer --max-line-bytes)");
		return 0;
	}
	if (!json_node_first(json_node_get(end, "findings"))) {
		section_head(out, "findings", "nothing unusual: its threads waited %s in all",
			     time);
		return 0;
	}
	section_head(out, "findings", "why its threads waited %s", time);
	e = print_findings(end, "waiting", "", out);
	if (left >= UNEXPLAINED_PCT)
		fprintf(out, "  %3.0f %%  not explained\n", left);
	if (e == 0)
		e = print_findings(end, "running", "  and what ran more than in the baseline\n",
				   out);
	if (e == 0)
		e = print_findings(end, "session",
				   "  and what lasted for this share of the session\n", out);
	return e;
}
