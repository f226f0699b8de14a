/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_queue.h: writes how long the session's threads waited for a CPU, and which cgroups ran in
 * that time. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_QUEUE_H
#define TROCAR_CONSUMER_EVIDENCE_TIME_SESSION_QUEUE_H

#include <stddef.h>

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes the lines `histogram` of all threads and of the pools that waited longest, and a line
 * `neighbour` for each cgroup that had the CPU meanwhile; nothing where the session has no `runq`.
 */
void session_queue_put(const struct session_result *s, const struct event_lines *lines,
		       const struct event_subject *subject);

/*
 * Writes ", 640 of 812 ms behind /batch.slice" where one other cgroup had the CPU for a quarter of
 * all waits and more. Returns the length as snprintf(3) does; 0: there is no such cgroup.
 */
int session_queue_headline(const struct session_result *s, char *text, size_t space);

#endif
