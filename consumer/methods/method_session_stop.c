/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_session_stop.h"

#include "consumer/methods/methods.h"
#include "consumer/session/session_stop.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

/* 16 hex digits, as event_line_session_text writes them. */
static bool parse_session(const struct json_node *value, uint64_t *ret_id)
{
	uint64_t id = 0;

	if (!json_node_is(value, JSON_STRING) || value->bytes != SESSION_TEXT_BYTES - 1)
		return false;
	for (size_t i = 0; i < value->bytes; i++) {
		char c = value->text[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return false;
		id = id << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	*ret_id = id;
	return true;
}

/* Reads params.session. Returns false if the error is set. */
static bool take_session(const struct json_node *params, uint64_t *ret_id,
			 char text[SESSION_TEXT_BYTES], struct control_error *error)
{
	if (!parse_session(json_node_get(params, "session"), ret_id)) {
		(void)control_error_fail(error, CONTROL_BAD_PARAMS,
					 "params.session: want the 16 digits of a session");
		return false;
	}
	event_line_session_text(*ret_id, text);
	return true;
}

static void answer_session(struct jsonw *w, const char *text)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "session", text);
	jsonw_object_end(w);
}

int method_session_stop(void *context, const struct control_peer *peer,
			const struct json_node *params, struct jsonw *w,
			struct control_error *error)
{
	const struct session_stopped by = { true, peer->uid, (uint32_t)peer->pid };
	struct methods *m = context;
	char text[SESSION_TEXT_BYTES];
	uint64_t id;

	if (!take_session(params, &id, text, error))
		return -1;
	if (session_stop(m->d->triggers->sessions, id, &by) < 0)
		return control_error_fail(error, CONTROL_NOT_FOUND, "no session %s runs", text);
	schedule_drain_soon(m->d->schedule);
	answer_session(w, text);
	return 0;
}

/* Returns the place of a connection, or a free one; there are as many places as connections. */
static struct method_tie *find_tie(struct methods *m, uint64_t connection)
{
	struct method_tie *nobodys = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(m->ties); i++) {
		if (m->ties[i].connection == connection)
			return &m->ties[i];
		if (!m->ties[i].connection)
			nobodys = &m->ties[i];
	}
	return nobodys;
}

int method_session_stop_with_connection(void *context, const struct control_peer *peer,
					const struct json_node *params, struct jsonw *w,
					struct control_error *error)
{
	struct methods *m = context;
	struct method_tie *tie = find_tie(m, peer->connection);
	char text[SESSION_TEXT_BYTES];
	uint64_t id;

	if (!take_session(params, &id, text, error))
		return -1;
	if (!tie)
		return control_error_fail(error, CONTROL_INTERNAL, "no place for the connection");
	*tie = (struct method_tie){ peer->connection,
				    id,
				    { true, peer->uid, (uint32_t)peer->pid } };
	answer_session(w, text);
	return 0;
}

void method_session_stop_closed(struct methods *m, uint64_t connection)
{
	struct method_tie *tie = find_tie(m, connection);

	if (!tie || tie->connection != connection)
		return;
	if (session_stop(m->d->triggers->sessions, tie->session, &tie->by) == 0)
		schedule_drain_soon(m->d->schedule);
	tie->connection = 0;
}
