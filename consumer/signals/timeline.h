/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline.h: the activity of a session's threads over time: the time of each pool (thread_pools.h)
 * by use, in slots of equal width over the pre-roll and the session. Signals that count a sample or
 * a wait also add it here. Size is bounded: pools that do not fit share one row. The main thread
 * fills it; the report thread reads it after the session has ended.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_TIMELINE_H
#define TROCAR_CONSUMER_SIGNALS_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_sample.h"
#include "shared/abi/abi.h"
#include "shared/tools/idmap.h"

#define TIMELINE_SLOTS 120  /* maximum, plus one slot for a late end */
#define TIMELINE_POOLS 1024 /* maximum of distinguished pools */
#define TIMELINE_ROWS  512  /* each for one part of one pool: half a MiB in all */

struct timeline_pool {
	struct timeline_pool *next; /* next pool with this hash */
	uint32_t tgid;		    /* 0: all pools that did not fit */
	uint64_t start_ns;
	char name[COMM_BYTES];
	uint64_t *ns[ACCOUNT_PARTS_]; /* owned, by slot; NULL: no time */
};

struct timeline {
	uint64_t from_ns;     /* CLOCK_MONOTONIC: start of the first slot */
	uint64_t slot_ns;     /* width of a slot */
	uint32_t slots;	      /* number of slots */
	uint32_t before;      /* slots before the trigger, which is at the start of the next one */
	struct idmap by_hash; /* hash -> first pool, owned */
	size_t count, rows;
	struct timeline_pool rest; /* pools without a row of their own */
	uint64_t crowded;	   /* samples and waits in `rest` because no row was free */
	uint64_t left_out;	   /* samples and waits dropped for lack of memory */
	uint32_t looks[TIMELINE_SLOTS + 1];
};

/*
 * Returns a timeline for a session that begins at start_ns, has a pre-roll of pre_ms and lasts at
 * most during_ms; NULL without memory. Release with timeline_free, which allows NULL.
 */
struct timeline *timeline_new(uint64_t start_ns, uint32_t pre_ms, uint32_t during_ms);
void timeline_free(struct timeline *t);

/*
 * Returns the pool of a thread, by its process and name, or `rest` if no pool is free. Valid as
 * long as `t`; NULL if `t` is NULL.
 */
struct timeline_pool *timeline_pool(struct timeline *t, const struct stack_sample *h);

/*
 * Adds the time of a thread of the pool. The time may lie partly outside of the timeline. Does
 * nothing if `pool` is NULL. A part without a free row is added to `rest`.
 */
void timeline_add(struct timeline *t, struct timeline_pool *pool, enum account_part part,
		  uint64_t from_ns, uint64_t to_ns);

/*
 * Returns the part that counts the time of a thread in `state` (wait_kind.h) that waits on `on`
 * (NULL: unknown). This is its kind of wait with two exceptions: an epoll that waits for an answer
 * counts as a wait for a socket, and a server that waits for its client's next request is idle
 * (wait_objects.h).
 */
enum account_part timeline_part(uint8_t state, const struct look_on *on);

/* Records that a sampling pass began. `t` may be NULL. */
void timeline_look(struct timeline *t, uint64_t ns);

#endif
