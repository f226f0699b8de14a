/* SPDX-License-Identifier: BSD-2-Clause */
/* method_session_lines.h: the control method session.lines: the kept lines of one session. */
#ifndef TROCAR_CONSUMER_METHODS_METHOD_SESSION_LINES_H
#define TROCAR_CONSUMER_METHODS_METHOD_SESSION_LINES_H

#include "consumer/control/control.h"

/*
 * The method session.lines {session}; without `session`, the last session that ended. A
 * control_call, with a struct methods as context.
 */
int method_session_lines(void *context, const struct control_peer *peer,
			 const struct json_node *params, struct jsonw *w,
			 struct control_error *error);

#endif
