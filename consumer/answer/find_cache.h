/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_cache.h: finds out whether the data that threads read from disks was not cached yet. Report
 * thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_CACHE_H
#define TROCAR_CONSUMER_ANSWER_FIND_CACHE_H

#include "consumer/answer/findings_search.h"

/*
 * Adds a finding that the page cache is cold, if most of the data read stayed in memory and had not
 * been evicted before. Returns the part of `ns`, waits for disks, that this explains: the share of
 * reads in the disks' time.
 */
uint64_t find_cache_cold(struct findings_search *s, uint64_t ns);

#endif
