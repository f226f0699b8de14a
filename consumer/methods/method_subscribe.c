/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_subscribe.h"

#include "consumer/methods/method_session_start.h"
#include "consumer/methods/methods.h"
#include "consumer/output/subscriptions.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"

int method_subscribe(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *w, struct control_error *error)
{
	struct methods *m = context;
	uint64_t id;

	if (subscriptions_open(m->subscriptions, peer->connection, clock_mono_ns(), &id) < 0)
		return control_error_fail(
			error, CONTROL_HELD,
			"%u clients already follow the lines: try again when one has ended",
			SUBSCRIPTIONS_MAX);
	jsonw_object(w, NULL);
	jsonw_u64(w, "subscription", id);
	jsonw_u64(w, "buffer_bytes", SUBSCRIPTIONS_BYTES);
	jsonw_object_end(w);
	return 0;
}

int method_subscribe_lines(void *context, const struct control_peer *peer,
			   const struct json_node *params, struct jsonw *w,
			   struct control_error *error)
{
	struct methods *m = context;
	const struct json_node *id = json_node_get(params, "subscription");

	if (!json_node_is(id, JSON_INTEGER))
		return control_error_fail(
			error, CONTROL_BAD_PARAMS,
			"params.subscription: want the number that subscribe gave");
	jsonw_object(w, NULL);
	if (subscriptions_take(m->subscriptions, peer->connection, json_node_u64(id),
			       clock_mono_ns(), w) < 0)
		return control_error_fail(
			error, CONTROL_NOT_FOUND,
			"this connection has no such subscription: it ends with the connection, or "
			"10 s after its last question");
	jsonw_object_end(w);
	return 0;
}
