/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lookup_pool.h: threads that look into directories for the main loop. A user can make any thread
 * wait that lists a directory of his, because the kernel locks the directory for it. The main loop
 * waits for such a call for a moment and goes on without it. One owner occupies at most one thread,
 * so nobody holds up the calls of others. Idle threads do not wake.
 */
#ifndef TROCAR_CONSUMER_CGROUP_LOOKUP_POOL_H
#define TROCAR_CONSUMER_CGROUP_LOOKUP_POOL_H

#include <stdint.h>

#define LOOKUP_POOL_THREADS  4
#define LOOKUP_POOL_WAIT_NS  30000000ull /* in a row, for all calls together */
#define LOOKUP_POOL_LEAST_NS 2000000ull	 /* for each all the same: others have used up the rest */

struct lookup_pool;

/* One call; the first member of what it needs and finds. */
struct lookup_call {
	void (*run)(struct lookup_call *w);  /* in a thread */
	void (*free)(struct lookup_call *w); /* in any */
	uint64_t owner;			     /* whose directory it goes into */
	struct lookup_call *next;	     /* of those that came late */
};

/* Starts the threads (before the system-call filter). 0 or -errno. */
int lookup_pool_new(struct lookup_pool **ret_pool);

/*
 * Takes `w` over and runs it. 0: it has run, and the caller owns it again. -EBUSY: the pool keeps
 * it, because a call of that owner is under way, all threads are busy, or this call is not back
 * yet; lookup_pool_late returns it when it is. Without threads (NULL) it runs at once.
 */
int lookup_pool_run(struct lookup_pool *p, struct lookup_call *w);

/* Returns a call that came back late, the caller's now; NULL when there is none. */
struct lookup_call *lookup_pool_late(struct lookup_pool *p);

/*
 * Ends the threads and frees everything; NULL is allowed. Does not wait for a call that is under
 * way: the thread that comes back last frees the rest.
 */
void lookup_pool_stop(struct lookup_pool *p);

#endif
