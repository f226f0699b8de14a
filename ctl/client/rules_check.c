/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that needs privileges or files is done first: the names of processes, the rules file, the
 * connection. Then the program gives up unneeded privileges, and parses.
 */
#include "ctl/client/rules_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/confine.h"
#include "ctl/cli/text.h"
#include "ctl/client/calls.h"
#include "ctl/client/process_names.h"
#include "ctl/client/show.h"
#include "shared/json/jsonw.h"
#include "shared/rules/rules.h"
#include "shared/tools/cleanup.h"

#define ANSWER_BYTES (CLIENT_ANSWER_BYTES + (2u << 20)) /* the agent's, and warnings */
#define REJECTED     (-32002)				/* docs/control.md */

struct check {
	const struct options *options;
	const char *file;
	char *text; /* owned */
	size_t bytes;
	struct process_names names;
	int fd;		     /* owned; -1: no agent, because of `why` (NULL: with --offline) */
	char *why;	     /* owned */
	struct rules *rules; /* owned */
	struct rules_faults faults, warnings;
	struct client_answer answer;
	uint64_t unmatched; /* rules without a current match */
};

static void check_done(struct check *c)
{
	free(c->text);
	free(c->why);
	process_names_done(&c->names);
	cleanup_close(&c->fd);
	rules_free(c->rules);
	rules_faults_done(&c->faults);
	rules_faults_done(&c->warnings);
	client_answer_done(&c->answer);
}

/* Without an agent, or without access to it, only the file is checked. */
static int connect_agent(struct check *c)
{
	int r;

	if (c->options->offline)
		return COMMAND_FINE;
	r = client_open(calls_socket(c->options));
	if (r >= 0) {
		c->fd = r;
		/* On failure there is only less advice. */
		(void)process_names_read(&c->names);
		return COMMAND_FINE;
	}
	if (!calls_is_absent(r))
		return calls_explain(c->options, r);
	c->why = calls_absence(c->options, r);
	return c->why ? COMMAND_FINE : calls_explain(c->options, -ENOMEM);
}

static void print_fault(const struct check *c, const char *kind, const struct rules_fault *f)
{
	_cleanup_free_ char *pointer = text_tame(f->pointer, strlen(f->pointer));
	_cleanup_free_ char *message = text_tame(f->message, strlen(f->message));

	fprintf(c->options->err, "%s:%" PRIu32 ":%" PRIu32 ": %s%s%s%s\n", c->file, f->line,
		f->column, kind, pointer ? pointer : "", *f->pointer ? ": " : "",
		message ? message : "-");
}

static void print_faults(const struct check *c, const char *kind, const struct rules_faults *faults)
{
	for (size_t i = 0; i < faults->kept; i++)
		print_fault(c, kind, &faults->items[i]);
	if (faults->count > faults->kept)
		fprintf(c->options->err, "%s: %zu more not shown\n", c->file,
			faults->count - faults->kept);
}

static int print_answer(const struct check *c, const struct jsonw *w)
{
	if (jsonw_end(w) < 0)
		return calls_explain(c->options, -ENOMEM);
	text_json(c->options->out, w->data, w->bytes);
	fputc('\n', c->options->out);
	return COMMAND_FINE;
}

/* Refuses the file in the way the agent does. */
static int refuse_file(const struct check *c)
{
	const char *many = c->faults.count == 1 ? "" : "s";
	_cleanup_(jsonw_done) struct jsonw w = { 0 };
	char message[64];

	print_faults(c, "", &c->faults);
	snprintf(message, sizeof(message), "%zu fault%s", c->faults.count, many);
	fprintf(c->options->err, "trocar: %s\n", message);
	if (!c->options->json)
		return COMMAND_FAILED;
	jsonw_init(&w, ANSWER_BYTES);
	jsonw_object(&w, NULL);
	jsonw_i64(&w, "code", REJECTED);
	jsonw_string(&w, "message", message);
	jsonw_object(&w, "data");
	jsonw_u64(&w, "fault_count", c->faults.count);
	rules_faults_write(&c->faults, &w, "faults");
	jsonw_object_end(&w);
	jsonw_object_end(&w);
	(void)print_answer(c, &w);
	return COMMAND_FAILED;
}

static int ask_matches(struct check *c)
{
	_cleanup_(jsonw_done) struct jsonw params;
	int r;

	jsonw_init(&params, CLIENT_REQUEST_BYTES);
	jsonw_object(&params, NULL);
	jsonw_string_n(&params, "text", c->text, c->bytes);
	jsonw_object_end(&params);
	r = client_ask(c->fd, "rules.check", &params, &c->answer);
	if (r < 0)
		return calls_explain(c->options, r);
	return c->answer.error ? calls_refused(c->options, &c->answer) : COMMAND_FINE;
}

static const struct json_node *get_matches(const struct check *c)
{
	return json_node_get(c->answer.result, "matches");
}

/* Returns for each rule whether it matches something now. NULL: no memory. */
static bool *find_matched(const struct check *c)
{
	bool *matched = calloc(c->rules->count + 1, sizeof(*matched));

	if (!matched)
		return NULL;
	for (const struct json_node *m = json_node_first(get_matches(c)); m;
	     m = json_node_next(m)) {
		const char *name = json_node_string(json_node_get(m, "rule"));
		const struct rule *rule = name ? rules_find(c->rules, name) : NULL;

		if (rule)
			matched[rule - c->rules->rules] = true;
	}
	return matched;
}

/* Writes why the rule may have no match, with the name that was probably meant. */
static void write_advice(const struct check *c, const struct rule *r, FILE *out)
{
	const char *there = NULL, *near = NULL;

	fprintf(out, "\"%s\" matches no process now", r->name);
	for (uint32_t i = 0; i < r->n_comms; i++) {
		if (!there && process_names_has(&c->names, r->comms[i], !r->comm_exact))
			there = r->comms[i];
		if (!near)
			near = process_names_near(&c->names, r->comms[i]);
	}
	if (!r->n_comms)
		fputs(": is there such a line in a /proc/PID/cgroup?", out);
	else if (there)
		fprintf(out, ": some have the name \"%s\", %s", there,
			r->cgroup_prefix ? "in other cgroups" : "and go to other rules");
	else if (near)
		fprintf(out, "; did you mean \"%s\": \"%s\"?",
			r->comm_exact ? "comm" : "comm_prefix", near);
}

/* Makes a warning in the form of the parser's, about the current processes. */
static int warn_unmatched(struct check *c, size_t at, struct rules_fault *ret_warning)
{
	const struct rule *r = &c->rules->rules[at];
	struct rules_fault warning = { .line = r->match_line, .column = r->match_column };
	size_t bytes;
	FILE *out;

	out = open_memstream(&warning.message, &bytes);
	if (!out)
		return -ENOMEM;
	write_advice(c, r, out);
	if (fclose(out) != 0 || asprintf(&warning.pointer, "/rules/%zu/match", at) < 0) {
		free(warning.message);
		return -ENOMEM;
	}
	*ret_warning = warning;
	return 0;
}

/* Adds a warning for each rule without a match, if the answer lists all matches. */
static int add_unmatched(struct check *c)
{
	_cleanup_free_ bool *matched = NULL;
	struct rules_fault *more;

	if (json_node_u64(json_node_get(c->answer.result, "matches_omitted")) ||
	    json_node_u64(json_node_get(c->answer.result, "cgroups_unreadable")))
		return 0;
	matched = find_matched(c);
	more = reallocarray(c->warnings.items, c->warnings.kept + c->rules->count + 1,
			    sizeof(*more));
	if (!matched || !more) {
		c->warnings.items = more ? more : c->warnings.items;
		return -ENOMEM;
	}
	c->warnings.items = more;
	for (size_t i = 0; i < c->rules->count; i++) {
		if (matched[i])
			continue;
		c->warnings.count++;
		c->unmatched++;
		if (c->unmatched > RULES_FAULTS_MAX)
			continue;
		if (warn_unmatched(c, i, &more[c->warnings.kept]) < 0)
			return -ENOMEM;
		c->warnings.kept++;
	}
	return 0;
}

/* Prints in the form of the agent's answer, with the warnings of this program. */
static int print_json(const struct check *c)
{
	_cleanup_(jsonw_done) struct jsonw w = { 0 };

	jsonw_init(&w, ANSWER_BYTES);
	jsonw_object(&w, NULL);
	jsonw_bool(&w, "ok", true);
	jsonw_u64(&w, "count", c->rules->count);
	rules_faults_write(&c->warnings, &w, "warnings");
	if (c->warnings.count > c->warnings.kept)
		jsonw_u64(&w, "warnings_omitted", c->warnings.count - c->warnings.kept);
	for (const struct json_node *m = json_node_first(c->answer.result); m;
	     m = json_node_next(m))
		if (!strcmp(m->key, "matches") || !strcmp(m->key, "matches_omitted") ||
		    !strcmp(m->key, "cgroups_unreadable"))
			jsonw_raw(&w, m->key, c->answer.line + m->offset, m->extent);
	if (!c->answer.result)
		jsonw_null(&w, "matches");
	jsonw_object_end(&w);
	return print_answer(c, &w);
}

static void print_more(const struct check *c, const char *key, const char *one, const char *many)
{
	uint64_t n = json_node_u64(json_node_get(c->answer.result, key));

	if (n)
		fprintf(c->options->out, "%" PRIu64 " %s\n", n, n == 1 ? one : many);
}

static int print_matches(const struct check *c)
{
	fputc('\n', c->options->out);
	if (show_matches(get_matches(c), c->options->out) < 0)
		return calls_explain(c->options, -ENOMEM);
	print_more(c, "matches_omitted", "more not shown", "more not shown");
	print_more(c, "cgroups_unreadable",
		   "cgroup of these rules does not let its processes be read",
		   "cgroups of these rules do not let their processes be read");
	return COMMAND_FINE;
}

static int print_result(const struct check *c)
{
	int status = COMMAND_FINE;

	print_faults(c, "warning: ", &c->warnings);
	if (c->why)
		fprintf(c->options->err, "trocar: matches were not asked for: %s\n", c->why);
	if (c->options->json) {
		status = print_json(c);
	} else {
		fprintf(c->options->out, "%zu rule%s, no fault; nothing applied\n", c->rules->count,
			c->rules->count == 1 ? "" : "s");
		if (c->answer.result)
			status = print_matches(c);
	}
	return status == COMMAND_FINE && c->options->strict && c->warnings.count ? COMMAND_FAILED
										 : status;
}

static int check_text(struct check *c)
{
	int r, status = COMMAND_FINE;

	r = confine_now(CONFINE_READER);
	if (r == 0)
		r = rules_parse(c->text, c->bytes, &c->rules, &c->faults, &c->warnings);
	if (r == -EINVAL)
		return refuse_file(c);
	if (r < 0)
		return calls_explain(c->options, r);
	if (c->fd >= 0)
		status = ask_matches(c);
	if (status == COMMAND_FINE && c->fd >= 0 && add_unmatched(c) < 0)
		return calls_explain(c->options, -ENOMEM);
	return status == COMMAND_FINE ? print_result(c) : status;
}

int rules_check_call(const struct options *options, const char *const *arguments)
{
	_cleanup_(check_done) struct check c = {
		.options = options,
		.file = arguments[0],
		.fd = -1,
	};
	int status = calls_read_rules(options, c.file, &c.text, &c.bytes);

	if (status == COMMAND_FINE)
		status = connect_agent(&c);
	return status == COMMAND_FINE ? check_text(&c) : status;
}
