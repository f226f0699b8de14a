/* SPDX-License-Identifier: BSD-2-Clause */
/* method_session_start.h: the control method session.start: a client requests a session. */
#ifndef TROCAR_CONSUMER_METHODS_METHOD_SESSION_START_H
#define TROCAR_CONSUMER_METHODS_METHOD_SESSION_START_H

#include "consumer/control/control.h"

/*
 * The method session.start {rule | cgroup | pid, during_ms, reason}; a control_begin, with a struct
 * methods as context.
 */
int method_session_start(void *context, const struct control_peer *peer,
			 const struct json_node *params, struct control_job **ret_job,
			 struct control_error *error);

#endif
