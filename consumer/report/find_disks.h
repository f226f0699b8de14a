/* SPDX-License-Identifier: BSD-2-Clause */
/* find_disks.h: what explains that threads waited for disks. Report thread only. */
#ifndef TROCAR_CONSUMER_REPORT_FIND_DISKS_H
#define TROCAR_CONSUMER_REPORT_FIND_DISKS_H

#include "consumer/report/findings_search.h"

/*
 * Adds a limit of the cgroup, another cgroup that had the disk, pauses of writers, calls that
 * sync, a cold page cache, and the disk itself, each with the part of the waits that is left for
 * it.
 */
void find_disks(struct findings_search *s);

/* Adds that a disk fails, whether or not threads wait for it. Call it before find_disks. */
void find_disks_errors(struct findings_search *s);

#endif
