/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * follow_peers.h: the activity of processes that threads waited for: of a child, or of the process
 * at the other end of a pipe or socket, if its threads were captured too. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FOLLOW_PEERS_H
#define TROCAR_CONSUMER_ANSWER_FOLLOW_PEERS_H

#include <stdint.h>

#include "consumer/answer/findings_search.h"

struct look_on;
struct wait_place;

/*
 * Appends to `says` the activity of the process at the other end of `on`, and of the process that
 * this one waited for: "; meanwhile sh (process 12) waited 5.0 s in wait4 for sleep, process 13;
 * meanwhile sleep (process 13) slept 5.0 s in nanosleep". Appends nothing if the process, or most
 * of its time, was not captured, or if it waits with several threads. `on` may be NULL.
 */
void follow_peers(const struct findings_search *s, const struct look_on *on,
		  char says[FINDINGS_SAYS_BYTES]);

/*
 * Adds a finding as findings_search_add does, and appends to `says` (FINDINGS_SAYS_BYTES) the links
 * of `c` from number `from` on, after `leads`. `c` has the awaited threads; NULL: no chain. Then it
 * follows the process that the last link or, without a chain, `on` (may be NULL) leads to.
 */
void follow_peers_add(struct findings_search *s, enum finding_cause cause, uint64_t ns, char *says,
		      const struct finding_evidence *evidence, const struct chain *c, uint32_t from,
		      const char *leads, const struct look_on *on);

/*
 * Returns the time of the threads that waited for a child which holds them up, without a baseline:
 * one that is halted, runs, or waits for something other than work. A process of one thread that
 * waits for a sleeping child only lets time pass, as scripts do. Of processes that wait for each
 * other's end only the first counts. *ret_place is where most of this time was; NULL: none.
 */
uint64_t follow_peers_child(const struct findings_search *s, const struct wait_place **ret_place);

#endif
