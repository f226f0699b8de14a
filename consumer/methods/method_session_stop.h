/* SPDX-License-Identifier: BSD-2-Clause */
/* method_session_stop.h: the control method session.stop: a client has seen enough. */
#ifndef TROCAR_CONSUMER_METHODS_METHOD_SESSION_STOP_H
#define TROCAR_CONSUMER_METHODS_METHOD_SESSION_STOP_H

#include "consumer/control/control.h"

/* The method session.stop {session}; a control_call, with a struct methods as context. */
int method_session_stop(void *context, const struct control_peer *peer,
			const struct json_node *params, struct jsonw *result,
			struct control_error *error);

#endif
