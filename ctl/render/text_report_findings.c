/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_findings.h"

#include <stdbool.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
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

static void print_finding(const struct json_node *finding, FILE *out)
{
	fprintf(out, "  %s%3.0f %%%s  ", terminal_on(STYLE_HEAD),
		100 * json_node_double(json_node_get(finding, "share")), terminal_off());
	member_text_put("[!certain=true?perhaps: ]{says}\n", finding, out);
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
static void print_findings(const struct json_node *findings, const char *of, const char *head,
			   FILE *out)
{
	const struct json_node *finding = json_node_first(findings);

	for (; finding; finding = json_node_next(finding)) {
		if (!json_node_equals(json_node_get(finding, "of"), of))
			continue;
		fputs(head, out);
		head = "";
		print_finding(finding, out);
		print_help(findings, finding, out);
	}
}

void text_report_findings(struct session_lines *s)
{
	const struct json_node *findings = json_node_get(s->end, "findings");
	double left = 100 * json_node_double(json_node_get(s->end, "unexplained"));
	bool any = json_node_first(findings);

	if (!findings)
		return;
	section_begin(s->out, "findings");
	if (any)
		member_text_put("why its threads waited {waited_ms:ms}\n", s->end, s->out);
	else
		member_text_put("[findings_more?causes omitted: the line was full (trocar-consumer "
				"--max-line-bytes)][!findings_more?nothing unusual: its threads "
				"waited {waited_ms:ms} in all]\n",
				s->end, s->out);
	print_findings(findings, "waiting", "", s->out);
	if (any && left >= UNEXPLAINED_PCT)
		fprintf(s->out, "  %3.0f %%  not explained\n", left);
	print_findings(findings, "running", "  and what ran more than in the baseline\n", s->out);
	print_findings(findings, "session", "  and what lasted for this share of the session\n",
		       s->out);
}
