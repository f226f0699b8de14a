/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_cache.h: whether the data that threads read from disks was not in memory yet. Report thread
 * only.
 */
#ifndef TROCAR_CONSUMER_REPORT_FIND_CACHE_H
#define TROCAR_CONSUMER_REPORT_FIND_CACHE_H

#include "consumer/report/findings_search.h"

/*
 * Adds that the page cache is cold, where most of the data read stayed in memory, and had not been
 * thrown out before. Returns how much of `ns`, waits for disks, it explains: as much as reads had
 * of the disks' time.
 */
uint64_t find_cache_cold(struct findings_search *s, uint64_t ns);

#endif
