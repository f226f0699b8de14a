/* SPDX-License-Identifier: BSD-2-Clause */
/* session_pools.h: writes the waits of the session's threads. Report thread only. */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_SESSION_POOLS_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_SESSION_POOLS_H

#include <stddef.h>

#include "consumer/evidence/waits/wait_places.h"
#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes one line for each pool; writes nothing if the session has no accounts. `places` has the
 * part of the lock time that was on condition variables.
 */
void session_pools_put(const struct session_result *s, const struct wait_places *places,
		       const struct event_lines *lines, const struct event_subject *subject);

/*
 * Returns the times of all threads of the session, indexed by enum account_part; NULL if it has no
 * accounts. Borrowed from the session.
 */
const uint64_t *session_pools_part_ns(const struct session_result *s);

/*
 * Writes "; 83 % of the time of its 96 threads was waiting for locks" if one kind of wait, other
 * than sleep and idle, or the queue is at least half of all threads' time. `condition_ns`, the
 * sampled part of the lock time on condition variables, does not count. Returns the length as
 * snprintf(3) does; 0 if there is no such kind, or no account.
 */
int session_pools_headline(const struct session_result *s, uint64_t condition_ns, char *text,
			   size_t space);

/*
 * Scales the stacks of the signal `offcpu` to the exact times of the threads (wait_scale.h), and
 * records the scaling, or the reason against it, with the stacks. Call before they are written.
 */
void session_pools_scale(struct session_result *s);

#endif
