/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_neighbours.h: writes which cgroups used the CPUs while a session ran: the `neighbour`
 * lines, and `cpu` of session.end. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_NEIGHBOURS_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_NEIGHBOURS_H

#include "consumer/evidence/cpu/neighbours.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

struct jsonw;

/*
 * Writes one line for each named neighbour, the one with the most CPU time first, and one line for
 * all others. Writes nothing if nothing was counted.
 */
void session_neighbours_put(const struct session_result *s, const struct event_lines *lines,
			    const struct event_subject *subject);

/*
 * Writes the identity of a neighbour, for any signal: its path, or the reason and, unless it is
 * NULL, the unverified `name`; neighbour_uid if it is in a user's directory, and neighbour_cgroups
 * if it is the whole directory.
 */
void session_neighbours_write_row(const struct neighbour_row *row, const char *name,
				  struct jsonw *w);

/*
 * Writes "cpu": {...} of session.end, or null and `cpu_reason`; writes nothing if no rule or
 * request asked for it.
 */
void session_neighbours_write_cpu(const struct session_result *s, struct jsonw *w);

#endif
