/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests a session (session.start). With --wait it subscribes to the agent's lines before the
 * request, and follows them until they have the end of each session that began.
 */
#include "ctl/client/capture.h"

#include <errno.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/member_text.h"
#include "ctl/client/calls.h"
#include "ctl/client/subscription.h"
#include "ctl/client/unit_cgroup.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/reason_text.h"

#define SESSIONS_MAX 64 /* more than the agent runs at once */
#define ID_BYTES     32

struct capture {
	const struct options *options;
	struct subscription lines;
	char waiting[SESSIONS_MAX][ID_BYTES]; /* ids of sessions that have not ended */
	size_t n_waiting;
	uint64_t deadline_ns;
	enum command_exit status; /* the worst verdict so far */
};

static void capture_done(struct capture *c)
{
	subscription_done(&c->lines);
}

/* Writes the names between commas; the agent reports unknown names. */
static void write_signals(const char *names, struct jsonw *params)
{
	jsonw_array(params, "signals");
	for (;; names++) {
		size_t bytes = strcspn(names, ",");

		jsonw_string_n(params, NULL, names, bytes);
		names += bytes;
		if (!*names)
			break;
	}
	jsonw_array_end(params);
}

/*
 * Writes the target of the capture as params. The form of values is checked here, their existence
 * by the agent.
 */
static int write_params(const struct options *options, struct jsonw *params)
{
	int n = !!options->rule + !!options->cgroup + !!options->pid;

	if (n != 1) {
		fprintf(options->err,
			"trocar: capture needs one of --rule, --cgroup, --unit and --pid\n");
		return -EINVAL;
	}
	if (options->reason && !reason_text_is_right(options->reason, strlen(options->reason))) {
		fprintf(options->err, "trocar: capture: --reason: want " REASON_TEXT_RIGHT "\n");
		return -EINVAL;
	}
	jsonw_object(params, NULL);
	if (options->rule)
		jsonw_string(params, "rule", options->rule);
	if (options->cgroup)
		jsonw_string(params, "cgroup", options->cgroup);
	if (options->pid)
		jsonw_u64(params, "pid", options->pid);
	if (options->during_ms)
		jsonw_u64(params, "during_ms", options->during_ms);
	if (options->reason)
		jsonw_string(params, "reason", options->reason);
	if (options->signals)
		write_signals(options->signals, params);
	jsonw_object_end(params);
	return 0;
}

static int show_started(const struct options *options, const struct client_answer *answer)
{
	if (options->json) {
		calls_print_json(options, answer, answer->result);
		return COMMAND_FINE;
	}
	member_text_put("session {session} started: cgroup {cgroup}, ends in {ends_in_ms}\n"
			"[held?{held} other cgroup{held:s} of the rule: held back\n]",
			answer->result, options->out);
	fflush(options->out);
	return COMMAND_FINE;
}

/* Stores the sessions that began, and until when to wait for their ends. */
static int note_sessions(struct capture *c, const struct json_node *result)
{
	const struct json_node *ids = subscription_member(result, "sessions", JSON_ARRAY);
	const struct json_node *ends = subscription_member(result, "ends_in_ms", JSON_INTEGER);
	uint64_t ends_ms = MIN(json_node_u64(ends), (uint64_t)UINT32_MAX);

	for (const struct json_node *m = json_node_first(ids); m; m = json_node_next(m)) {
		if (!json_node_is(m, JSON_STRING) || m->bytes >= ID_BYTES ||
		    c->n_waiting >= SESSIONS_MAX)
			return calls_explain(c->options, -EPROTO);
		memcpy(c->waiting[c->n_waiting++], m->text, m->bytes + 1);
	}
	if (!c->n_waiting)
		return calls_explain(c->options, -EPROTO);
	c->deadline_ns = clock_mono_ns() + ends_ms * NSEC_PER_MSEC + SUBSCRIPTION_LATE_NS;
	return COMMAND_FINE;
}

/* Removes the session from the waiting ones. False: it is not one of them. */
static bool take_waiting(struct capture *c, const char *id)
{
	for (size_t i = 0; i < c->n_waiting; i++) {
		if (strcmp(c->waiting[i], id) != 0)
			continue;
		memmove(c->waiting[i], c->waiting[--c->n_waiting], ID_BYTES);
		return true;
	}
	return false;
}

static enum command_exit exit_of(const struct json_node *verdict)
{
	const char *word = json_node_is(verdict, JSON_STRING) ? verdict->text : "";

	if (!strcmp(word, "complete"))
		return COMMAND_FINE;
	return !strcmp(word, "partial") ? COMMAND_PARTIAL : COMMAND_INCONCLUSIVE;
}

static void show_end(const struct capture *c, const struct client_answer *answer,
		     const struct json_node *line)
{
	if (c->options->json)
		calls_print_json(c->options, answer, line);
	else
		member_text_put("session {session} ended, {verdict}: {headline}\n", line,
				c->options->out);
}

static int take_line(void *context, const struct client_answer *answer,
		     const struct json_node *line)
{
	const struct json_node *type = subscription_member(line, "type", JSON_STRING);
	const struct json_node *session = subscription_member(line, "session", JSON_STRING);
	struct capture *c = context;
	enum command_exit status;

	if (!type || strcmp(type->text, "session.end") != 0 || !session ||
	    !take_waiting(c, session->text))
		return 0;
	show_end(c, answer, line);
	status = exit_of(json_node_get(line, "verdict"));
	c->status = MAX(c->status, status);
	return 0;
}

static int wait_for_ends(struct capture *c)
{
	while (c->n_waiting) {
		bool more = false;
		int error, status = subscription_lines(&c->lines, take_line, c, &more, &error);

		if (status != COMMAND_FINE)
			return status;
		if (more || !c->n_waiting)
			continue;
		if (clock_mono_ns() > c->deadline_ns) {
			fprintf(c->options->err, "trocar: session %s has not ended in time%s\n",
				c->waiting[0],
				c->lines.omitted ? ", or its line came too fast" : "");
			return COMMAND_FAILED;
		}
		subscription_pause();
	}
	return (int)c->status;
}

static int capture_one(const struct options *options)
{
	_cleanup_(capture_done) struct capture c = { .options = options, .lines = { .fd = -1 } };
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	_cleanup_(jsonw_done) struct jsonw params;
	int status;

	jsonw_init(&params, CLIENT_REQUEST_BYTES);
	if (write_params(options, &params) < 0)
		return COMMAND_USAGE;
	status = subscription_connect(&c.lines, options);
	if (status == COMMAND_FINE && options->wait)
		status = subscription_begin(&c.lines);
	if (status == COMMAND_FINE)
		status = subscription_ask(&c.lines, "session.start", &params, &answer);
	if (status == COMMAND_FINE)
		status = show_started(options, &answer);
	if (status != COMMAND_FINE || !options->wait)
		return status;
	status = note_sessions(&c, answer.result);
	return status == COMMAND_FINE ? wait_for_ends(&c) : status;
}

int capture_call(const struct options *options, const char *const *arguments)
{
	struct unit_cgroup unit;
	int status = unit_cgroup_resolve(options, &unit);

	(void)arguments;
	return status == COMMAND_FINE ? capture_one(&unit.options) : status;
}
