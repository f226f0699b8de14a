/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_findings.h"

#include <stdbool.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A smaller unexplained share is not printed. */
#define UNEXPLAINED_PCT 10

static const struct {
	const char *word, *helps;
} causes[] = {
#define FINDING(id, word, of, resource, least, level, proof, helps) { word, helps },
#include "shared/findings/findings.def"
#undef FINDING
};

/* Its share of the waits, or how long it lasted. Lines of older agents have a share of each. */
static void print_finding(const struct json_node *finding, FILE *out)
{
	bool of_waits = json_node_equals(json_node_get(finding, "of"), "waiting");
	char lasted[TEXT_UNIT_BYTES];

	fprintf(out, "  %s", terminal_on(STYLE_HEAD));
	if (of_waits)
		fprintf(out, "%3.0f %%", 100 * json_node_double(json_node_get(finding, "share")));
	else
		fprintf(out, "%5s",
			text_duration_us(member_text_number(finding, "explains_ms") *
						 (NSEC_PER_MSEC / NSEC_PER_USEC),
					 lasted));
	fprintf(out, "%s  ", terminal_off());
	member_text_put(TEXT_REPORT_FINDINGS_PERHAPS("perhaps: ") "{says}\n", finding, out);
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

void text_report_findings(struct session_lines *s)
{
	const struct json_node *findings = json_node_get(s->end, "findings");
	const struct json_node *finding = json_node_first(findings);
	double left = 100 * json_node_double(json_node_get(s->end, "unexplained"));

	if (!findings)
		return;
	section_begin(s->out, "findings");
	if (finding)
		member_text_put(member_text_number(s->end, "waited_ms")
					? "why its threads waited {waited_ms:ms}\n"
					: "what the kernel's own files prove\n",
				s->end, s->out);
	else
		member_text_put("[findings_more?causes omitted: the line was full (trocar-consumer "
				"--max-line-bytes)][!findings_more?[answer.level=not_known?cause "
				"not known][!answer.level=not_known?nothing unusual]: its threads "
				"waited {waited_ms:ms} in all]\n",
				s->end, s->out);
	for (; finding; finding = json_node_next(finding)) {
		print_finding(finding, s->out);
		print_help(findings, finding, s->out);
	}
	if (json_node_first(findings) && left >= UNEXPLAINED_PCT)
		fprintf(s->out, "  %3.0f %%  not explained\n", left);
}
