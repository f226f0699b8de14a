/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/methods.h"

#include "consumer/methods/method_rules.h"
#include "consumer/methods/method_session_lines.h"
#include "consumer/methods/method_session_start.h"
#include "consumer/methods/method_session_stop.h"
#include "consumer/methods/method_status.h"
#include "consumer/methods/method_subscribe.h"
#include "consumer/session/session_events.h"
#include "shared/json/jsonw.h"

static int list_watches(void *context, const struct control_peer *peer,
			const struct json_node *params, struct jsonw *w,
			struct control_error *error)
{
	struct methods *m = context;

	jsonw_array(w, NULL);
	for (uint32_t i = 0; i < m->t->pins->abi.slots; i++)
		if (m->t->watches->by_slot[i])
			watch_events_write(m->watch_events, m->t->watches->by_slot[i], w);
	jsonw_array_end(w);
	return 0;
}

static int list_sessions(void *context, const struct control_peer *peer,
			 const struct json_node *params, struct jsonw *w,
			 struct control_error *error)
{
	struct methods *m = context;

	session_events_write_list(m->t->sessions, w);
	return 0;
}

const struct control_method methods_table[] = {
	{ "status", false, method_status },
	{ "rules.get", false, method_rules_get },
	{ "rules.check", false, .begin = method_rules_check },
	{ "rules.set", true, method_rules_set },
	{ "watches", false, list_watches },
	{ "sessions", false, list_sessions },
	{ "session.start", true, .begin = method_session_start },
	{ "session.stop", true, method_session_stop },
	{ "session.tie", true, method_session_stop_with_connection },
	{ "session.lines", true, method_session_lines },
	{ "subscribe", true, method_subscribe },
	{ "lines", true, method_subscribe_lines },
	{},
};
