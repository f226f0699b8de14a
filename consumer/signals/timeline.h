/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * timeline.h: what the threads of a session did when: the time of each pool (thread_pools.h) by
 * use, in slots of one width over its pre-roll and its time. The signals that count a sample or a
 * wait add it here too. Bounded: pools without room share one row. Filled by the main thread, read
 * by the report thread when the session has ended.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_TIMELINE_H
#define TROCAR_CONSUMER_SIGNALS_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_sample.h"
#include "shared/abi/abi.h"
#include "shared/tools/idmap.h"

#define TIMELINE_SLOTS 120  /* so many at most, and one more for an end that is late */
#define TIMELINE_POOLS 1024 /* that are distinguished */
#define TIMELINE_ROWS  512  /* of one part of one pool: half a MiB in all */

struct timeline_pool {
	struct timeline_pool *next; /* with the same hash */
	uint32_t tgid;		    /* 0: all for which there was no room */
	uint64_t start_ns;
	char name[COMM_BYTES];
	uint64_t *ns[ACCOUNT_PARTS_]; /* owned, by slot; NULL: none */
};

struct timeline {
	uint64_t from_ns;     /* CLOCK_MONOTONIC: where the first slot begins */
	uint64_t slot_ns;     /* how wide they are */
	uint32_t slots;	      /* how many */
	uint32_t before;      /* of these; the trigger is where the next one begins */
	struct idmap by_hash; /* hash -> first pool, owned */
	size_t count, rows;
	struct timeline_pool rest; /* of pools without a row of their own */
	uint64_t crowded;	   /* samples and waits that are there for want of room elsewhere */
	uint64_t left_out;	   /* those for which there was no memory at all */
	uint32_t looks[TIMELINE_SLOTS + 1];
};

/*
 * Returns a timeline of a session that begins at start_ns with that pre-roll, for at most
 * during_ms; NULL: no memory. timeline_free frees it; NULL is allowed.
 */
struct timeline *timeline_new(uint64_t start_ns, uint32_t pre_ms, uint32_t during_ms);
void timeline_free(struct timeline *t);

/*
 * Returns the pool of a thread of that process and name; the one of the rest where there is no
 * room. Valid as long as `t`; NULL where `t` is.
 */
struct timeline_pool *timeline_pool(struct timeline *t, const struct stack_sample *h);

/*
 * Adds a time of a thread of the pool, which may lie partly outside. `pool` NULL: nothing. A part
 * without room is added to the rest.
 */
void timeline_add(struct timeline *t, struct timeline_pool *pool, enum account_part part,
		  uint64_t from_ns, uint64_t to_ns);

/*
 * Returns the part that the time of a thread in `state` (wait_kind.h) goes to, that waits on `on`
 * (NULL: not known): its kind of wait, but an epoll that waits for an answer is a wait for a
 * socket, and a server that waits for its client's next request is idle (wait_objects.h).
 */
enum account_part timeline_part(uint8_t state, const struct look_on *on);

/* A pass of looks began. `t` may be NULL. */
void timeline_look(struct timeline *t, uint64_t ns);

#endif
