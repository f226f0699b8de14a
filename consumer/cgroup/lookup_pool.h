/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lookup_pool.h: threads that look into directories for the main loop. A user can block any thread
 * that lists one of the user's directories, because the kernel locks the directory for it. The main
 * loop waits for such a call for a limited time, never longer than its time slice (turn.h), and
 * then continues without it. A call of one owner occupies at most one thread, so no owner delays
 * the calls of others. Idle threads do not wake up.
 *
 * The agent's own calls that may wait for a lock of the kernel (cgroup_mutex, which every process
 * that makes or enters cgroups takes) have a thread that no owner's call occupies.
 */
#ifndef TROCAR_CONSUMER_CGROUP_LOOKUP_POOL_H
#define TROCAR_CONSUMER_CGROUP_LOOKUP_POOL_H

#include <stdint.h>

#define LOOKUP_POOL_THREADS 4		/* for calls of owners */
#define LOOKUP_POOL_WAIT_NS 30000000ull /* limit for all consecutive calls together */

/* The owner of the agent's own calls. */
#define LOOKUP_POOL_AGENT UINT64_MAX

struct lookup_pool;

/* One call. It is the first member of the struct with its arguments and results. */
struct lookup_call {
	void (*run)(struct lookup_call *w);  /* called in a thread of the pool */
	void (*free)(struct lookup_call *w); /* called in any thread */
	uint64_t owner;			     /* the owner of the directory */
	struct lookup_call *next;	     /* list of the late calls */
};

/* Starts the threads (before the system-call filter). 0 or -errno. */
int lookup_pool_new(struct lookup_pool **ret_pool);

/*
 * Takes over `w` and runs it. Returns 0: it has run, and the caller owns it again. Returns -EBUSY:
 * a call of that owner is in progress or all threads are busy, and `w` is freed; or `w` did not
 * finish within LOOKUP_POOL_WAIT_NS and the loop's time slice, and the pool keeps it until
 * lookup_pool_late returns it. Without threads (NULL) it runs at once.
 */
int lookup_pool_run(struct lookup_pool *p, struct lookup_call *w);

/*
 * Does the same in parts. lookup_pool_start takes `w` over and makes a thread run it; without
 * threads it has run on return. Returns 0; -EBUSY as lookup_pool_run, and `w` is freed.
 */
int lookup_pool_start(struct lookup_pool *p, struct lookup_call *w);

/*
 * Waits until `until_ns` (clock_mono_ns). Returns 0: it has run, and the caller owns it; -EAGAIN.
 */
int lookup_pool_wait(struct lookup_pool *p, struct lookup_call *w, uint64_t until_ns);

/* Like lookup_pool_wait, for as long as lookup_pool_run would. */
int lookup_pool_wait_turn(struct lookup_pool *p, struct lookup_call *w);

/* Ends the wait for `w`, which the pool then keeps until lookup_pool_late returns it. */
void lookup_pool_abandon(struct lookup_pool *p, struct lookup_call *w);

/* Returns a late call, which the caller then owns; NULL if there is none. */
struct lookup_call *lookup_pool_late(struct lookup_pool *p);

/*
 * Ends the threads and frees everything; NULL is allowed. Does not wait for a call in progress: the
 * last thread to finish frees the rest.
 */
void lookup_pool_stop(struct lookup_pool *p);

#endif
