/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aside.h: calls that may wait for somebody, made beside the main loop. In a directory of his own a
 * user makes threads queue for the lock that whoever lists it must have, too. The loop waits for
 * such a call a moment, and goes on without it. One owner has at most one thread, so that nobody
 * holds up the calls of others. Idle threads do not wake.
 */
#ifndef TROCAR_CONSUMER_CGROUP_ASIDE_H
#define TROCAR_CONSUMER_CGROUP_ASIDE_H

#include <stdint.h>

#define ASIDE_THREADS  4
#define ASIDE_WAIT_NS  30000000ull /* in a row, for all calls together */
#define ASIDE_LEAST_NS 2000000ull  /* for each all the same: others have used up the rest */

struct aside;

/* One call; the first member of what it needs and finds. */
struct aside_work {
	void (*run)(struct aside_work *w);  /* in a thread */
	void (*free)(struct aside_work *w); /* in any */
	uint64_t owner;			    /* whose directory it goes into */
	struct aside_work *next;	    /* of those that came late */
};

/* Starts the threads (before the system-call filter). 0 or -errno. */
int aside_new(struct aside **ret_aside);

/*
 * Takes `w` over and runs it. 0: it has run, and is the caller's again. -EBUSY, and it is not: a
 * call of that owner is under way, all threads are, or this one is not back yet. One that comes
 * back late is kept for aside_late. Without threads (NULL) it runs here and now.
 */
int aside_run(struct aside *a, struct aside_work *w);

/* Something that came back late, the caller's now; NULL when there is nothing. */
struct aside_work *aside_late(struct aside *a);

/* Ends the threads and frees everything; NULL is allowed. Not waited for is a call that is under
 * way: who comes back last frees the rest. */
void aside_stop(struct aside *a);

#endif
