/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_pools.h: looks for pools of threads that have none to spare, in the findings of a session.
 * Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_FIND_POOLS_H
#define TROCAR_CONSUMER_REPORT_FIND_POOLS_H

#include "consumer/report/findings_search.h"

/*
 * Adds a pool with threads that waited for work when calm, and are all in one other wait now: what
 * comes next waits for them. Sockets have the data that arrived and was not taken.
 */
void find_pools_starved(struct findings_search *s);

#endif
