/* SPDX-License-Identifier: BSD-2-Clause */
/* session_lines.h: the lines of a session that need few or none of its stacks. */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_LINES_H
#define TROCAR_CONSUMER_REPORT_SESSION_LINES_H

#include "consumer/evidence/waits/wait_places.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes the lines `facts`, `pool` and `timeline`, and the lines of each signal kind of the session
 * (struct signal_kind); writes nothing for a signal that did not run. `places`: where its threads
 * waited.
 */
void session_lines_put(struct session_result *s, const struct wait_places *places,
		       const struct event_lines *lines, const struct event_subject *subject);

#endif
