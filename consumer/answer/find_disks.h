/* SPDX-License-Identifier: BSD-2-Clause */
/* find_disks.h: finds causes of a session's waits for disks. Report thread only. */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_DISKS_H
#define TROCAR_CONSUMER_ANSWER_FIND_DISKS_H

#include "consumer/answer/findings_search.h"

/*
 * Adds the causes: a limit of the cgroup, another cgroup that used the disk, dirty throttling,
 * calls that sync, a cold page cache, and the disk itself. Each explains a part of the waits that
 * the causes before it left.
 */
void find_disks(struct findings_search *s);

/* Adds that a disk fails, whether or not threads wait for it. Call before find_disks. */
void find_disks_errors(struct findings_search *s);

#endif
