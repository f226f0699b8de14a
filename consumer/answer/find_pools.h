/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_pools.h: finds thread pools without a free thread, for the findings of a session. Report
 * thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_POOLS_H
#define TROCAR_CONSUMER_ANSWER_FIND_POOLS_H

#include "consumer/answer/findings_search.h"

/*
 * Adds a pool of threads that waited for work in the baseline and now share one other wait, so that
 * new work waits for them. Sockets show the data that arrived and was not read.
 */
void find_pools_starved(struct findings_search *s);

#endif
