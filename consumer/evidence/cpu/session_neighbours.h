/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_neighbours.h: writes the users of the CPUs while a session ran: the lines `neighbour`,
 * and `cpu` of session.end. Report thread.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_NEIGHBOURS_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_SESSION_NEIGHBOURS_H

#include "consumer/evidence/cpu/neighbours.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

struct jsonw;

/*
 * Writes one line for each named neighbour, the one with the most CPU time first, and one for all
 * the others. Writes none when nothing was counted.
 */
void session_neighbours_put(const struct session_result *s, const struct event_lines *lines,
			    const struct event_subject *subject);

/*
 * Writes the identity of a neighbour, of any signal: neighbour_uid, where it is in a user's
 * directory, and neighbour_cgroups, where it is all of that directory.
 */
void session_neighbours_write_owner(uint32_t uid, size_t cgroups, struct jsonw *w);

/*
 * Writes "cpu": {...} of session.end, or null and `cpu_reason`; nothing when no rule or request
 * asked for it.
 */
void session_neighbours_write_cpu(const struct session_result *s, struct jsonw *w);

#endif
