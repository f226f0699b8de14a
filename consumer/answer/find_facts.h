/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_facts.h: adds the cause that the kernel's own files prove, and finds the root of a stall
 * that pressure reports. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_FACTS_H
#define TROCAR_CONSUMER_ANSWER_FIND_FACTS_H

#include "consumer/answer/findings_search.h"

/*
 * Adds the cause that the facts prove, and marks the root of the pressure's stall. Call after all
 * other searches. `measured`: the waiting time of the session's threads is known. Then only the
 * pressure, which measures more tasks than the session has, makes a cause without such a time
 * count.
 */
void find_facts(struct findings_search *s, bool measured);

#endif
