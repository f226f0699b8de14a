/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_session_stop.h"

#include "consumer/methods/methods.h"
#include "consumer/session/session_stop.h"

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

int method_session_stop(void *context, const struct control_peer *peer,
			const struct json_node *params, struct jsonw *w,
			struct control_error *error)
{
	const struct session_stopped by = { true, peer->uid, (uint32_t)peer->pid };
	struct methods *m = context;
	char text[SESSION_TEXT_BYTES];
	uint64_t id;

	if (!parse_session(json_node_get(params, "session"), &id))
		return control_error_fail(error, CONTROL_BAD_PARAMS,
					  "params.session: want the 16 digits of a session");
	event_line_session_text(id, text);
	if (session_stop(m->d->triggers->sessions, id, &by) < 0)
		return control_error_fail(error, CONTROL_NOT_FOUND, "no session %s runs", text);
	schedule_drain_soon(m->d->schedule);
	jsonw_object(w, NULL);
	jsonw_string(w, "session", text);
	jsonw_object_end(w);
	return 0;
}
