/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/subscription.h"

#include <errno.h>
#include <time.h>

#include "ctl/cli/command_exit.h"
#include "ctl/client/calls.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

const struct json_node *subscription_member(const struct json_node *object, const char *key,
					    enum json_kind kind)
{
	const struct json_node *value = json_node_get(object, key);

	return json_node_is(value, kind) ? value : NULL;
}

int subscription_connect(struct subscription *s, const struct options *options)
{
	*s = (struct subscription){ .options = options };
	s->fd = client_open(calls_socket(options));
	return s->fd < 0 ? calls_explain(options, s->fd) : COMMAND_FINE;
}

int subscription_ask(struct subscription *s, const char *method, const struct jsonw *params,
		     struct client_answer *ret_answer)
{
	int r = client_ask(s->fd, method, params, ret_answer);

	if (r < 0)
		return calls_explain(s->options, r);
	return ret_answer->error ? calls_refused(s->options, ret_answer) : COMMAND_FINE;
}

int subscription_begin(struct subscription *s)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	int status = subscription_ask(s, "subscribe", NULL, &answer);
	const struct json_node *number =
		subscription_member(answer.result, "subscription", JSON_INTEGER);

	if (status != COMMAND_FINE)
		return status;
	if (!number)
		return calls_explain(s->options, -EPROTO);
	s->number = json_node_u64(number);
	return COMMAND_FINE;
}

int subscription_lines(struct subscription *s, subscription_take take, void *context,
		       bool *ret_more, int *ret_error)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	_cleanup_(jsonw_done) struct jsonw params;
	const struct json_node *lines;
	uint64_t omitted;
	int status;

	*ret_error = 0;
	jsonw_init(&params, CLIENT_REQUEST_BYTES);
	jsonw_object(&params, NULL);
	jsonw_u64(&params, "subscription", s->number);
	jsonw_object_end(&params);
	status = subscription_ask(s, "lines", &params, &answer);
	if (status != COMMAND_FINE)
		return status;
	lines = subscription_member(answer.result, "lines", JSON_ARRAY);
	if (!lines)
		return calls_explain(s->options, -EPROTO);
	omitted = json_node_u64(subscription_member(answer.result, "omitted", JSON_INTEGER));
	s->omitted = MIN(omitted, UINT64_MAX - s->omitted) + s->omitted;
	*ret_more = json_node_is_true(json_node_get(answer.result, "more"));
	for (const struct json_node *m = json_node_first(lines); m; m = json_node_next(m)) {
		*ret_error = take(context, &answer, m);
		if (*ret_error < 0)
			return COMMAND_FAILED;
	}
	return COMMAND_FINE;
}

void subscription_pause(void)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0,
			&(struct timespec){ .tv_nsec = (long)SUBSCRIPTION_ASK_NS }, NULL);
}

void subscription_done(struct subscription *s)
{
	cleanup_close(&s->fd);
}
