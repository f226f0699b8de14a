/* SPDX-License-Identifier: BSD-2-Clause */
/* method_session_stop.h: the control method session.stop: a client ends a session early. */
#ifndef TROCAR_CONSUMER_METHODS_METHOD_SESSION_STOP_H
#define TROCAR_CONSUMER_METHODS_METHOD_SESSION_STOP_H

#include "consumer/control/control.h"

struct methods;

/* The method session.stop {session}; a control_call, with a struct methods as context. */
int method_session_stop(void *context, const struct control_peer *peer,
			const struct json_node *params, struct jsonw *result,
			struct control_error *error);

/*
 * The method session.tie {session}: the session ends with the connection, unless it has ended
 * before, so that a client that is killed leaves no session. Each connection has at most one tied
 * session, the last.
 */
int method_session_stop_with_connection(void *context, const struct control_peer *peer,
					const struct json_node *params, struct jsonw *result,
					struct control_error *error);

/* Ends the session that is tied to a closed connection. */
void method_session_stop_closed(struct methods *methods, uint64_t connection);

#endif
