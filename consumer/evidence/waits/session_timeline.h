/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_timeline.h: writes the activity of the session's threads over time. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_SESSION_TIMELINE_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_SESSION_TIMELINE_H

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes one `timeline` line for each of the most active pools, idle time aside, then one for the
 * others together; writes nothing if no activity of the threads was seen.
 */
void session_timeline_put(const struct session_result *s, const struct event_lines *lines,
			  const struct event_subject *subject);

#endif
