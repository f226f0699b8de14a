/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_reclaim.h: writes the lines about direct reclaim and dirty throttling, of the session's
 * threads and of other cgroups. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_MEMORY_SESSION_RECLAIM_H
#define TROCAR_CONSUMER_EVIDENCE_MEMORY_SESSION_RECLAIM_H

#include "consumer/evidence/memory/reclaim_times.h"
#include "consumer/session/session_result.h"

/* Writes the lines `reclaim`, `histogram` and `neighbour`; writes nothing without reclaim times. */
void session_reclaim_put(const struct session_result *s, const struct event_lines *lines,
			 const struct event_subject *subject);

#endif
