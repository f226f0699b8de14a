/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/session_lines.h"
#include "ctl/render/symptom.h"
#include "ctl/render/text_report_answer.h"
#include "ctl/render/text_report_chains.h"
#include "ctl/render/text_report_findings.h"
#include "ctl/view/view.h"
#include "shared/tools/macro.h"

/* One session with its lines, for printing. */
struct explained {
	struct session_lines lines;
	const char *end_text; /* text of its last line */
	const char *file;     /* file of the session, for commands that a person copies */
	unsigned int number;  /* number of the last printed cause */
};

/* ---- the causes */

/*
 * Prints a value as written in the line, for a jq program in single quotes: a quote inside a string
 * becomes its escape.
 */
static void put_json(const struct explained *e, const struct json_node *value)
{
	const char *text = e->end_text + value->offset;
	size_t bytes = value->extent;

	while (bytes) {
		const char *quote = memchr(text, '\'', bytes);
		size_t n = quote ? (size_t)(quote - text) : bytes;

		text_json(e->lines.out, text, n);
		if (quote)
			fputs("\\u0027", e->lines.out);
		n += quote != NULL;
		text += n;
		bytes -= n;
	}
}

/* Accepts only keys of ours, because another key could change the jq program. */
static bool is_plain(const struct json_node *member)
{
	for (uint32_t i = 0; i < member->key_bytes; i++)
		if ((member->key[i] < 'a' || member->key[i] > 'z') && member->key[i] != '_')
			return false;
	return member->key_bytes > 0;
}

/* Prints how to see the lines that are the evidence of a finding. */
static void print_evidence(const struct explained *e, const struct json_node *evidence)
{
	for (; evidence; evidence = json_node_next(evidence)) {
		const struct json_node *m = json_node_first(evidence);

		fputs("   it rests on: jq -c 'select(.session == ", e->lines.out);
		put_json(e, json_node_get(e->lines.end, "session"));
		for (; m; m = json_node_next(m)) {
			if (!is_plain(m))
				continue;
			fprintf(e->lines.out, " and .%s == ", m->key);
			put_json(e, m);
		}
		fprintf(e->lines.out, ")' %s\n", e->file);
	}
}

/* Prints a finding: its share of the waits, or how long it lasted, its level and the reason. */
static void print_cause(struct explained *e, const struct json_node *finding)
{
	bool of_waits = json_node_equals(json_node_get(finding, "of"), "waiting");
	const char *helps = text_report_findings_help(finding);
	uint64_t chain = json_node_u64(json_node_get(finding, "chain"));
	FILE *out = e->lines.out;

	fprintf(out, "\n%u. ", ++e->number);
	member_text_put(of_waits ? "{share:share} of its waits ({explains_ms:ms})"
				 : "for {explains_ms:ms}",
			finding, out);
	member_text_put(": " TEXT_REPORT_FINDINGS_PERHAPS("perhaps ") "{says}\n", finding, out);
	member_text_put("[level?   {level}: {proof}\n]", finding, out);
	if (helps)
		fprintf(out, "   what helps: %s\n", helps);
	if (chain)
		text_report_chains_one(&e->lines, chain,
				       "   the threads that they waited for, link by link:\n", 5);
	print_evidence(e, json_node_first(json_node_get(finding, "evidence")));
}

/* Prints the unexplained share. */
static void print_rest(const struct explained *e, uint64_t waited_ms)
{
	double left = json_node_double(json_node_get(e->lines.end, "unexplained"));
	char time[TEXT_UNIT_BYTES];

	fprintf(e->lines.out, "\nnot explained: %.0f %% of their waits (%s)\n", 100 * left,
		text_duration_us((uint64_t)((double)waited_ms * left) *
					 (NSEC_PER_MSEC / NSEC_PER_USEC),
				 time));
}

static void print_why(struct explained *e)
{
	const struct json_node *findings = json_node_get(e->lines.end, "findings");
	const struct json_node *finding = json_node_first(findings);
	uint64_t waited_ms = json_node_u64(json_node_get(e->lines.end, "waited_ms"));

	if (!finding) {
		member_text_put(
			"[findings?[findings_more?causes omitted: the line was full "
			"(trocar-consumer --max-line-bytes)][!findings_more?"
			"[answer.level=not_known?cause not known][!answer.level=not_known?"
			"nothing unusual]: its threads waited {waited_ms:ms} in all, and nothing "
			"ran more than in the baseline]][!findings?[findings_reason?no "
			"cause found: {findings_reason}][!findings_reason?no cause "
			"recorded: these lines come from an older version]]\n",
			e->lines.end, e->lines.out);
		return;
	}
	if (waited_ms)
		member_text_put("\nwhy its threads waited, {waited_ms:ms} in all:\n", e->lines.end,
				e->lines.out);
	for (; finding; finding = json_node_next(finding))
		print_cause(e, finding);
	if (waited_ms)
		print_rest(e, waited_ms);
}

static void print_session(struct explained *e)
{
	struct session_lines *s = &e->lines;

	session_lines_head(s, "", "");
	if (s->start) {
		fputs("\nwhat was noticed: ", s->out);
		symptom_put(s->start, s->out);
		fputs("\n", s->out);
	}
	if (!s->end)
		return;
	e->end_text = pool_text(&s->store->texts, s->session->end);
	text_report_answer_put(s->end, "how sure the answer is: ", s->out);
	member_text_put("how good the data are: {verdict}[verdict_reason?, {verdict_reason}]\n",
			s->end, s->out);
	print_why(e);
}

static void explained_done(struct explained *e)
{
	session_lines_done(&e->lines);
}

static int print_all(const struct store *store, const char *file, FILE *out)
{
	unsigned int n = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->ids.count; i++) {
		_cleanup_(explained_done) struct explained e = { .file = file };

		if (!store->sessions[i].files)
			continue;
		if (n++)
			fputs("\n----\n\n", out);
		session_lines_open(&e.lines, store, i, out);
		print_session(&e);
		r = e.lines.error;
	}
	return r;
}

int explain_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(input_done) struct input input = { 0 };
	_cleanup_free_ char *file = NULL;
	int r = input_read_sessions(options, arguments, &input);

	if (r)
		return r;
	file = arguments[0] && strcmp(arguments[0], "-") != 0
		       ? text_tame(arguments[0], strlen(arguments[0]))
		       : strdup("FILE");
	r = file ? print_all(&input.store, file, options->out) : -ENOMEM;
	if (r == 0)
		input_say_left(options, &input);
	return r < 0 ? input_fail(options, &input, r) : input_status(&input);
}
