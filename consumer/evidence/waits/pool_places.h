/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_places.h: the places where the threads of one name (without digits), of any process, waited
 * in the baseline and in the stall. Shows which pool had spare threads and has none. From off-CPU
 * samples. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_POOL_PLACES_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_POOL_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/waits/known_wait.h"
#include "consumer/sampling/stack_table.h"
#include "shared/tools/idmap.h"

#define POOL_PLACES_MAX 1024 /* pools' places beyond this have no row */

/* One function and kind of wait of one pool. */
struct pool_place {
	char pool[COMM_BYTES]; /* pool_name_of */
	uint32_t tgid;	       /* 0: of several processes */
	uint8_t state;	       /* known_wait.h */
	bool free;	       /* a thread that waits here would take new work */
	const char *fn;	       /* borrowed; NULL: no name */
	const char *caller;    /* borrowed; of the heaviest stack; NULL: unknown */
	uint64_t heaviest_ns;
	uint64_t calm_ns, ns; /* in the phases before and during */
};

struct pool_places {
	struct pool_place *rows; /* owned */
	size_t count, space;
	struct idmap by_hash; /* hash -> number of the row plus 1 */
	uint64_t left_out;    /* stacks without a row */
};

/* A pool without a free thread that had free ones in the baseline. */
struct pool_starved {
	const struct pool_place *busy; /* where most of its threads wait */
	const struct pool_place *calm; /* where they waited for work in the baseline */
	uint64_t threads; /* mean number of threads that wait for something other than work */
	uint64_t all_ns, free_ns; /* its waits in the phase `during`; of these, for work */
	uint64_t calm_all_ns;	  /* its waits in the phase `before` */
};

void pool_places_init(struct pool_places *p);
void pool_places_done(struct pool_places *p);

/*
 * Adds a stack of threads that do not run; `wait` is their wait. If the stack is not `whole`, their
 * own function is unknown, and they may be free.
 */
void pool_places_add(struct pool_places *p, const struct stack *stack,
		     const struct known_wait *wait, bool whole);

/*
 * Finds the pool with the most threads that waited for work in the baseline, at least two, and do
 * not in the stall, where most of them share one other wait. during_ms and calm_ms are the lengths
 * of the phases; calm_ms 0: no baseline. Returns false if there is no such pool.
 */
bool pool_places_starved(const struct pool_places *p, uint64_t during_ms, uint64_t calm_ms,
			 struct pool_starved *ret_starved);

#endif
