/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/member_text.h"
#include "ctl/cli/text.h"
#include "ctl/client/show.h"
#include "ctl/client/show_status.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/parse.h"
#include "shared/tools/utf8.h"

#define REJECTED (-32002) /* docs/control.md */
#define HELD	 (-32003)

const char *calls_socket(const struct options *options)
{
	const char *path = options->socket;

	if (!path)
		path = getenv("TROCAR_SOCKET");
	return path && *path ? path : OPTIONS_SOCKET;
}

bool calls_is_absent(int error)
{
	return error == -ENOENT || error == -ECONNREFUSED || error == -EACCES || error == -EPERM;
}

char *calls_absence(const struct options *options, int error)
{
	const char *what = "no agent at", *advice = "is the service running?";
	char *text = NULL;

	if (error == -EACCES || error == -EPERM) {
		what = "not allowed to ask the agent at";
		advice = "only root and the group trocar-admin may";
	} else if (error == -ECONNREFUSED) {
		advice = "it has ended: see journalctl -u trocar-consumer";
	}
	if (asprintf(&text, "%s %s (%s): %s", what, calls_socket(options), strerror(-error),
		     advice) < 0)
		return NULL;
	return text;
}

int calls_explain(const struct options *options, int error)
{
	const char *path = calls_socket(options);
	_cleanup_free_ char *absence = NULL;

	switch (error) {
	case -EMSGSIZE:
		fprintf(options->err,
			"trocar: the request would be longer than the agent takes "
			"(%u bytes)\n",
			CLIENT_REQUEST_BYTES);
		return COMMAND_FAILED;
	case -EPROTO:
		fprintf(options->err, "trocar: the program that answers at %s is not the agent\n",
			path);
		return COMMAND_FAILED;
	case -ENOMEM:
		fprintf(options->err, "trocar: no memory\n");
		return COMMAND_FAILED;
	case -ETIMEDOUT:
		fprintf(options->err,
			"trocar: the agent at %s did not answer within %d s: is the service "
			"well?\n",
			path, CLIENT_TIMEOUT_MS / 1000);
		return COMMAND_UNREACHABLE;
	default:
		absence = calls_absence(options, error);
		fprintf(options->err, "trocar: %s\n", absence ? absence : strerror(-error));
		return COMMAND_UNREACHABLE;
	}
}

void calls_print_json(const struct options *options, const struct client_answer *answer,
		      const struct json_node *node)
{
	text_json(options->out, answer->line + node->offset, node->extent);
	fputc('\n', options->out);
}

/*
 * Prints the agent's message. The agent uses the JSON names of parameters: here a parameter is an
 * option, the session is an argument, and signals are separated by commas.
 */
static void print_refusal(const struct options *options, const char *message)
{
	static const char params[] = "params.", signals[] = "params.signals:";

	fputs("trocar: ", options->err);
	if (!strncmp(message, signals, strlen(signals))) {
		fputs("--signals: want auto, or with commas between and none twice any of:",
		      options->err);
		for (unsigned int i = 0; i < SIGNAL_COUNT_; i++)
			fprintf(options->err, " %s", rules_signal_name(i));
		return;
	}
	if (!strncmp(message, params, strlen(params))) {
		message += strlen(params);
		fputs(strncmp(message, "session:", strlen("session:")) != 0 ? "--" : "",
		      options->err);
		for (; *message && *message != ':'; message++)
			fputc(*message == '_' ? '-' : *message, options->err);
	}
	fputs(message, options->err);
}

/*
 * Prints why the agent refused, with each fault of a rules file; `file` is NULL for other requests.
 */
static int explain_refusal(const struct options *options, const struct client_answer *answer,
			   const char *file)
{
	const struct json_node *error = answer->error, *data = json_node_get(error, "data");
	int64_t code = json_node_i64(json_node_get(error, "code"));
	_cleanup_free_ char *message = NULL;

	if (options->json)
		calls_print_json(options, answer, error);
	if (file && code == REJECTED)
		(void)show_faults(json_node_get(data, "faults"), file, "", options->err);
	message = member_text_value("", json_node_get(error, "message"));
	print_refusal(options, message ? message : "refused");
	member_text_put("[retry_ms?; try again in {retry_ms}]\n", data, options->err);
	return code == HELD ? COMMAND_HELD : COMMAND_FAILED;
}

int calls_refused(const struct options *options, const struct client_answer *answer)
{
	return explain_refusal(options, answer, NULL);
}

/*
 * Sends a request to the agent and prints its result: as JSON with --json, else by `show` (NULL:
 * the caller prints it). On COMMAND_FINE the caller releases the answer, if it requested it.
 */
static int ask_agent(const struct options *options, const char *method, const struct jsonw *params,
		     const char *file, int (*show)(const struct json_node *result, FILE *out),
		     struct client_answer *ret_answer)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	int r;

	r = client_call(calls_socket(options), method, params, &answer);
	if (r < 0)
		return calls_explain(options, r);
	if (answer.error)
		return explain_refusal(options, &answer, file);
	if (options->json)
		calls_print_json(options, &answer, answer.result);
	else if (show && show(answer.result, options->out) < 0)
		return calls_explain(options, -ENOMEM);
	if (ret_answer) {
		*ret_answer = answer;
		answer = (struct client_answer){ 0 };
	}
	return COMMAND_FINE;
}

/* Requests the data shown next to the status. Unanswered data is omitted. */
static void ask_more(int fd, const char *method, struct client_answer *ret_answer)
{
	if (fd >= 0 && client_ask(fd, method, NULL, ret_answer) < 0)
		*ret_answer = (struct client_answer){ 0 };
}

int calls_status(const struct options *options, const char *const *arguments)
{
	_cleanup_(client_answer_done) struct client_answer status = { 0 }, watches = { 0 },
							   sessions = { 0 };
	_cleanup_close_ int fd = -1;
	struct status_answers answers;
	int r;

	if (options->json)
		return ask_agent(options, "status", NULL, NULL, NULL, NULL);
	fd = client_open(calls_socket(options));
	r = fd < 0 ? fd : client_ask(fd, "status", NULL, &status);
	if (r < 0)
		return calls_explain(options, r);
	if (status.error)
		return calls_refused(options, &status);
	ask_more(fd, "watches", &watches);
	ask_more(fd, "sessions", &sessions);
	answers = (struct status_answers){ status.result, watches.result, sessions.result };
	r = show_status(&answers, options->all, options->out);
	return r < 0 ? calls_explain(options, r) : COMMAND_FINE;
}

int calls_watches(const struct options *options, const char *const *arguments)
{
	return ask_agent(options, "watches", NULL, NULL, show_watches, NULL);
}

int calls_sessions(const struct options *options, const char *const *arguments)
{
	return ask_agent(options, "sessions", NULL, NULL, show_sessions, NULL);
}

/*
 * Prints the rules in the form of the file, so that they can be edited and set again; prints their
 * origin on `err`.
 */
int calls_rules_get(const struct options *options, const char *const *arguments)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	const struct json_node *rules;
	int status = ask_agent(options, "rules.get", NULL, NULL, NULL, &answer);

	if (status != COMMAND_FINE || options->json)
		return status;
	member_text_put("generation {generation}, from {source}\n", answer.result, options->err);
	rules = json_node_get(answer.result, "rules");
	if (rules)
		text_json_pretty(options->out, answer.line + rules->offset, rules->extent);
	fputc('\n', options->out);
	return COMMAND_FINE;
}

int calls_read_rules(const struct options *options, const char *file, char **ret_text,
		     size_t *ret_bytes)
{
	int r = strcmp(file, "-")
			? io_read_file(AT_FDCWD, file, RULES_TEXT_BYTES, ret_text, ret_bytes)
			: io_read_fd(STDIN_FILENO, RULES_TEXT_BYTES, ret_text, ret_bytes);

	if (r == 0)
		return COMMAND_FINE;
	fprintf(options->err, "trocar: %s: %s\n", file,
		r == -EFBIG ? "longer than 1 MiB" : strerror(-r));
	return COMMAND_FAILED;
}

/* Reads the file and sends it; on COMMAND_FINE the caller owns *ret_answer. */
static int ask_with_file(const struct options *options, const char *method, const char *file,
			 struct client_answer *ret_answer)
{
	_cleanup_(jsonw_done) struct jsonw params;
	_cleanup_free_ char *text = NULL;
	size_t bytes, offset;

	jsonw_init(&params, CLIENT_REQUEST_BYTES);
	if (calls_read_rules(options, file, &text, &bytes) != COMMAND_FINE)
		return COMMAND_FAILED;
	/*
	 * The JSON writer would replace such bytes, and the active rules would differ from the
	 * file.
	 */
	if (!utf8_is_text(text, bytes, &offset)) {
		fprintf(options->err, "trocar: %s: byte %zu is no UTF-8 text\n", file, offset);
		return COMMAND_FAILED;
	}
	jsonw_object(&params, NULL);
	jsonw_string_n(&params, "text", text, bytes);
	jsonw_object_end(&params);
	return ask_agent(options, method, &params, file, NULL, ret_answer);
}

int calls_rules_set(const struct options *options, const char *const *arguments)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	int status = ask_with_file(options, "rules.set", arguments[0], &answer);

	if (status != COMMAND_FINE || options->json)
		return status;
	(void)show_faults(json_node_get(answer.result, "warnings"), arguments[0],
			  "warning: ", options->err);
	member_text_put("{count} rule{count:s} in force, generation {generation}; "
			"{unchanged_watches} watch[unchanged_watches=1? goes]"
			"[!unchanged_watches=1?es go] on unchanged\n",
			answer.result, options->out);
	return COMMAND_FINE;
}

int calls_version(const struct options *options, const char *const *arguments)
{
	if (options->json)
		fprintf(options->out, "{\"version\":\"%s\"}\n", TROCAR_VERSION);
	else
		fprintf(options->out, "trocar %s\n", TROCAR_VERSION);
	return COMMAND_FINE;
}
