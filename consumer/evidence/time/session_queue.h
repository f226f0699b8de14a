/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_queue.h: writes the waits for a CPU of the session's threads, and the cgroups that ran in
 * the meantime. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_QUEUE_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_QUEUE_H

#include <stddef.h>

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes a `histogram` line for all threads and for each of the pools that waited longest, and a
 * `neighbour` line for each cgroup that had the CPU in the meantime; writes nothing if the session
 * has no signal `runq`.
 */
void session_queue_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject);

/*
 * Writes ", 640 of 812 ms behind /batch.slice" if one other cgroup had the CPU for at least a
 * quarter of all waits. Returns the length as snprintf(3) does; 0 if there is no such cgroup.
 */
int session_queue_headline(const struct session_result *s, char *text, size_t space);

#endif
