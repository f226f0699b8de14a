/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_locks.h: finds the locks that threads waited for, their holders, and the holders' own waits.
 * Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_LOCKS_H
#define TROCAR_CONSUMER_ANSWER_FIND_LOCKS_H

#include <stdint.h>

#include "consumer/answer/findings_search.h"

/*
 * Returns the time that threads waited for locks with a pattern, in nanoseconds; 0 also without the
 * signal.
 */
uint64_t find_locks_contended_ns(const struct session_result *s);

/*
 * Passes waits for locks without a pattern on (findings_search_pass). Locks with a pattern are
 * findings of their own, which include the holders' waits.
 */
void find_locks_pass(struct findings_search *s);

/* Adds the findings of part_ns of ACCOUNT_LOCK. */
void find_locks(struct findings_search *s);

#endif
