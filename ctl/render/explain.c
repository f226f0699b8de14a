/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/render/symptom.h"
#include "ctl/render/text_report_chains.h"
#include "ctl/render/text_report_findings.h"
#include "ctl/render/text_report_lines.h"
#include "ctl/view/view.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* One session with its lines, for printing. */
struct explained {
	const struct store *store;
	const struct store_session *session;
	const struct json_node *end; /* its last line; NULL: not in the input */
	const char *end_text;	     /* text of `end` */
	const char *file;	     /* file of the session, for commands that a person copies */
	unsigned int number;	     /* number of the last printed cause */
	FILE *out;
};

static void put_value(const struct json_node *object, const char *key, FILE *out)
{
	_cleanup_free_ char *text = member_text_value(key, json_node_get(object, key));

	fputs(text ? text : "-", out);
}

/* ---- the trigger */

static int print_symptom(const struct explained *e)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	const struct json_node *start = text_report_lines_read(e->store, e->session->start, &tree);

	if (!start && e->session->start != STORE_NONE)
		return -ENOMEM;
	if (!start)
		return 0;
	fputs("\nwhat was noticed: ", e->out);
	symptom_put(start, e->out);
	fputs("\n", e->out);
	return 0;
}

/* ---- the quality of the data */

static void print_quality(const struct explained *e)
{
	fputs("how good the data are: ", e->out);
	put_value(e->end, "verdict", e->out);
	if (json_node_get(e->end, "verdict_reason")) {
		fputs(", ", e->out);
		put_value(e->end, "verdict_reason", e->out);
	}
	fputs("\n", e->out);
}

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

		text_json(e->out, text, n);
		if (quote)
			fputs("\\u0027", e->out);
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

		fputs("   it rests on: jq -c 'select(.session == ", e->out);
		put_json(e, json_node_get(e->end, "session"));
		for (; m; m = json_node_next(m)) {
			if (!is_plain(m))
				continue;
			fprintf(e->out, " and .%s == ", m->key);
			put_json(e, m);
		}
		fprintf(e->out, ")' %s\n", e->file);
	}
}

/* Prints the wait chain of a finding, link by link, if a line has it. */
static int print_chain(const struct explained *e, const struct json_node *finding)
{
	uint64_t number = json_node_u64(json_node_get(finding, "chain"));

	if (!number)
		return 0;
	return text_report_chains_one(e->store, e->session, number,
				      "   the threads that they waited for, link by link:\n", 5,
				      e->out);
}

static int print_cause(struct explained *e, const struct json_node *finding, uint64_t all_ms)
{
	_cleanup_free_ char *says = member_text_value("says", json_node_get(finding, "says"));
	const char *helps = text_report_findings_help(finding);
	bool certain = json_node_is_true(json_node_get(finding, "certain"));
	uint64_t ms = json_node_u64(json_node_get(finding, "explains_ms"));
	char time[TEXT_UNIT_BYTES];
	int r;

	if (!says)
		return -ENOMEM;
	fprintf(e->out, "\n%u. %.0f %%%s%s%s: %s%s\n", ++e->number,
		100 * json_node_double(json_node_get(finding, "share")), all_ms ? " (" : "",
		all_ms ? text_duration_us(ms * (NSEC_PER_MSEC / NSEC_PER_USEC), time) : "",
		all_ms ? ")" : "", certain ? "" : "perhaps ", says);
	if (helps)
		fprintf(e->out, "   what helps: %s\n", helps);
	r = print_chain(e, finding);
	print_evidence(e, json_node_first(json_node_get(finding, "evidence")));
	return r;
}

static int print_causes(struct explained *e, const char *of, const char *head, uint64_t all_ms)
{
	const struct json_node *f = json_node_first(json_node_get(e->end, "findings"));
	int r = 0;

	for (; r == 0 && f; f = json_node_next(f)) {
		if (!json_node_equals(json_node_get(f, "of"), of))
			continue;
		fputs(head, e->out);
		head = "";
		r = print_cause(e, f, all_ms);
	}
	return r;
}

/* Prints the unexplained share. */
static void print_rest(const struct explained *e, uint64_t waited_ms)
{
	double left = json_node_double(json_node_get(e->end, "unexplained"));
	char time[TEXT_UNIT_BYTES];

	fprintf(e->out, "\nnot explained: %.0f %% of their waits (%s)\n", 100 * left,
		text_duration_us((uint64_t)((double)waited_ms * left) *
					 (NSEC_PER_MSEC / NSEC_PER_USEC),
				 time));
}

static int print_why(struct explained *e)
{
	const struct json_node *findings = json_node_get(e->end, "findings");
	uint64_t waited_ms = json_node_u64(json_node_get(e->end, "waited_ms"));
	char time[TEXT_UNIT_BYTES], head[96];
	int r;

	if (!findings) {
		if (json_node_get(e->end, "findings_reason")) {
			fputs("no cause found: ", e->out);
			put_value(e->end, "findings_reason", e->out);
		} else {
			fputs("no cause recorded: these lines come from an older version", e->out);
		}
		fputs("\n", e->out);
		return 0;
	}
	text_duration_us(waited_ms * (NSEC_PER_MSEC / NSEC_PER_USEC), time);
	if (!json_node_first(findings) && json_node_get(e->end, "findings_more")) {
		fputs("causes omitted: the line was full (trocar-consumer --max-line-bytes)\n",
		      e->out);
		return 0;
	}
	if (!json_node_first(findings)) {
		fprintf(e->out,
			"nothing unusual: its threads waited %s in all, and nothing ran more than "
			"in the baseline\n",
			time);
		return 0;
	}
	snprintf(head, sizeof(head), "\nwhy its threads waited, %s in all:\n", time);
	r = print_causes(e, "waiting", head, waited_ms);
	if (e->number)
		print_rest(e, waited_ms);
	if (r == 0)
		r = print_causes(e, "running", "\nwhat ran more than in the baseline:\n", 0);
	return r < 0 ? r
		     : print_causes(e, "session", "\nwhat lasted for this share of the session:\n",
				    0);
}

static int print_head(const struct explained *e)
{
	_cleanup_free_ char *id = store_tame(e->store, e->session->id),
			    *rule = store_tame(e->store, e->session->rule),
			    *cgroup = store_tame(e->store, e->session->cgroup),
			    *headline = store_tame(e->store, e->session->headline);
	char when[CLOCK_TEXT_BYTES];

	if (!id || !rule || !cgroup || !headline)
		return -ENOMEM;
	clock_text(e->session->time_ns, when);
	fprintf(e->out, "%s\nsession %s, rule %s, %.19s UTC, %s\n",
		e->end ? headline
		       : "This session has no end here: it still ran, or its lines were cut.",
		id, rule, when, cgroup);
	return 0;
}

static int print_session(struct explained *e)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	size_t bytes;
	int r;

	e->end = text_report_lines_read(e->store, e->session->end, &tree);
	if (!e->end && e->session->end != STORE_NONE)
		return -ENOMEM;
	if (e->end)
		e->end_text = pool_get(&e->store->texts, e->session->end, &bytes);
	r = print_head(e);
	if (r == 0)
		r = print_symptom(e);
	if (r < 0 || !e->end)
		return r;
	print_quality(e);
	return print_why(e);
}

static int print_all(const struct store *store, const char *file, FILE *out)
{
	unsigned int n = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < store->ids.count; i++) {
		struct explained e = {
			.store = store, .session = &store->sessions[i], .file = file, .out = out
		};

		if (!store->sessions[i].files)
			continue;
		if (n++)
			fputs("\n----\n\n", out);
		r = print_session(&e);
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
