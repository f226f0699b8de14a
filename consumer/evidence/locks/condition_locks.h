/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * condition_locks.h: finds out which of a session's locks are condition variables, from the off-CPU
 * samples of threads waiting there. The kernel sees futexes in both cases, but a condition variable
 * has no holder, and a pool without work waits on one. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_LOCKS_CONDITION_LOCKS_H
#define TROCAR_CONSUMER_EVIDENCE_LOCKS_CONDITION_LOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/evidence/waits/known_wait.h"
#include "consumer/sampling/stack_table.h"
#include "shared/tools/idmap.h"

#define CONDITION_LOCKS_MAX 1024 /* futexes; the others stay unknown */

struct condition_locks {
	struct condition_lock {
		uint32_t tgid;
		uint64_t address;
		uint64_t ns, condition_ns; /* sampled in the phase `during` */
	} * rows;			   /* owned */
	size_t count, space;
	struct idmap by_hash; /* hash -> number of the row plus 1 */
};

void condition_locks_init(struct condition_locks *c);
void condition_locks_done(struct condition_locks *c);

/* Adds a stack of threads that do not run; `wait` is their wait. */
void condition_locks_add(struct condition_locks *c, const struct stack *stack,
			 const struct known_wait *wait);

/*
 * Marks the locks that most samples found to be condition variables, and clears a pattern that
 * implies a holder or a queue; LOCK_PATTERN_HERD stays.
 */
void condition_locks_mark(const struct condition_locks *c, struct lock_waits *locks);

#endif
