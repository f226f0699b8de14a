/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * condition_locks.h: which of a session's locks are condition variables, by the looks that found
 * threads there. To the kernel both are futexes; but nobody holds a condition variable, and a pool
 * without work waits on one. Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_CONDITION_LOCKS_H
#define TROCAR_CONSUMER_REPORT_CONDITION_LOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/report/known_wait.h"
#include "consumer/sampling/stack_table.h"
#include "consumer/signals/lock_waits.h"
#include "shared/tools/idmap.h"

#define CONDITION_LOCKS_MAX 1024 /* futexes; of the rest nobody knows it */

struct condition_locks {
	struct condition_lock {
		uint32_t tgid;
		uint64_t address;
		uint64_t ns, condition_ns; /* of looks in the phase during */
	} * rows;			   /* owned */
	size_t count, space;
	struct idmap by_hash; /* hash -> number of the row plus 1 */
};

void condition_locks_init(struct condition_locks *c);
void condition_locks_done(struct condition_locks *c);

/* Adds a stack of threads that do not run, of which `wait` says what they wait for. */
void condition_locks_add(struct condition_locks *c, const struct stack *stack,
			 const struct known_wait *wait);

/*
 * Marks the locks that most looks found to be condition variables, and takes back a pattern that
 * says who held them or that they are short of room: a herd stays one.
 */
void condition_locks_mark(const struct condition_locks *c, struct lock_waits *locks);

#endif
