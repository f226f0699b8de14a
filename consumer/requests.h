/* SPDX-License-Identifier: BSD-2-Clause */
/* requests.h: captures that somebody asks for through the control socket. */
#ifndef TROCAR_CONSUMER_REQUESTS_H
#define TROCAR_CONSUMER_REQUESTS_H

#include "consumer/control.h"

/* The method session.start {rule | cgroup | pid, during_ms}; a control_call. */
int requests_session_start(void *context, const struct control_peer *peer,
			   const struct json_node *params, struct jsonw *result,
			   struct control_error *error);

#endif
