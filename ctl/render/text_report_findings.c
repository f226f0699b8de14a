/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/text_report_findings.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/text_report_lines.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* Less is not worth a line. */
#define UNEXPLAINED_PCT 10

static const struct {
	const char *word, *name;
} causes[] = {
#define FINDING(id, word, least, name, helps) { word, name },
#include "shared/findings/findings.def"
#undef FINDING
};

/* Prints one; a cause that this version does not know has its word alone. */
static int print_finding(const struct json_node *finding, FILE *out)
{
	_cleanup_free_ char *word = member_text_value("cause", json_node_get(finding, "cause"));
	_cleanup_free_ char *says = member_text_value("says", json_node_get(finding, "says"));
	double share = json_node_double(json_node_get(finding, "share"));
	bool certain = json_node_is_true(json_node_get(finding, "certain"));
	const char *name = word;

	if (!word || !says)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (!strcmp(word, causes[i].word))
			name = causes[i].name;
	fprintf(out, "  %3.0f %%  %s%s: %s\n", 100 * share, certain ? "" : "perhaps ", name, says);
	return 0;
}

/* Prints those of one kind of time, below `head` where there are any. */
static int print_findings(const struct json_node *end, const char *of, const char *head, FILE *out)
{
	const struct json_node *finding = json_node_first(json_node_get(end, "findings"));
	int e = 0;

	for (; e == 0 && finding; finding = json_node_next(finding)) {
		_cleanup_free_ char *whose = member_text_value("of", json_node_get(finding, "of"));

		if (!whose || strcmp(whose, of) != 0)
			continue;
		fputs(head, out);
		head = "";
		e = print_finding(finding, out);
	}
	return e;
}

int text_report_findings(const struct store *store, const struct store_session *session, FILE *out)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *end = text_report_lines_read(store, session->end, &tree);
	uint64_t waited_ms = json_node_u64(json_node_get(end, "waited_ms"));
	double left = 100 * json_node_double(json_node_get(end, "unexplained"));
	char time[TEXT_UNIT_BYTES], head[64];
	int e;

	if (!end && session->end != STORE_NONE)
		return -ENOMEM;
	if (!json_node_first(json_node_get(end, "findings")))
		return 0;
	snprintf(head, sizeof(head), "why its threads waited %s:\n",
		 text_duration_us(waited_ms * (NSEC_PER_MSEC / NSEC_PER_USEC), time));
	e = print_findings(end, "waiting", head, out);
	if (left >= UNEXPLAINED_PCT)
		fprintf(out, "  %3.0f %%  not explained\n", left);
	return e < 0 ? e : print_findings(end, "running", "what ran more:\n", out);
}
