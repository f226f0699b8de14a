/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * find_deadlock.h: finds threads that hold locks and wait for each other's. The holders were read
 * from the locks (bpf/waits/look_lock.h). Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FIND_DEADLOCK_H
#define TROCAR_CONSUMER_ANSWER_FIND_DEADLOCK_H

#include "consumer/answer/findings_search.h"

/* Returns the time of all threads that wait in a deadlock or for it; 0: there is none. */
uint64_t find_deadlock_ns(const struct session_result *s);

/* Adds the finding of a deadlock, if there is one. */
void find_deadlock(struct findings_search *s);

/*
 * Returns whether threads in or behind the deadlock wait for this lock of the process (0: of any).
 */
bool find_deadlock_has(const struct session_result *s, uint32_t tgid, uint64_t address);

#endif
