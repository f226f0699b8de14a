/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_neighbours.h: writes who had the CPUs while a session ran: the lines `neighbour`, and
 * `cpu` of session.end. Report thread.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_NEIGHBOURS_H
#define TROCAR_CONSUMER_REPORT_SESSION_NEIGHBOURS_H

#include "consumer/output/event_line.h"
#include "consumer/session/neighbours.h"
#include "shared/json/jsonw.h"

/*
 * Writes one line for each named neighbour, the one with the most CPU time first, and one for all
 * the others. Writes none when nothing was counted.
 */
void session_neighbours_put(const struct neighbours *n, const struct lines *lines,
			    const struct event_subject *subject);

/* Writes "cpu": {...} of session.end; nothing when nothing was counted. */
void session_neighbours_write_cpu(const struct neighbours *n, struct jsonw *w);

#endif
