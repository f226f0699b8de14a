/* SPDX-License-Identifier: BSD-2-Clause */
/* session_locks.h: writes for which locks the session's threads waited. Report thread only. */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_LOCKS_H
#define TROCAR_CONSUMER_REPORT_SESSION_LOCKS_H

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/* Writes a line `lock` for each lock with a name, and one for the rest. Nothing without them. */
void session_locks_put(const struct session_result *s, const struct lines *lines,
		       const struct event_subject *subject);

#endif
