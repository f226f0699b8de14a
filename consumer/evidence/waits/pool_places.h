/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_places.h: where the threads of one name (but for digits) waited, of whichever process, when
 * calm and in the stall: so it shows which pool had threads to spare and has none. By looks. Report
 * thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_POOL_PLACES_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_POOL_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/waits/known_wait.h"
#include "consumer/sampling/stack_table.h"
#include "shared/tools/idmap.h"

#define POOL_PLACES_MAX 1024 /* the rest has no row */

/* One function and kind of wait of one pool. */
struct pool_place {
	char pool[COMM_BYTES]; /* pool_name_of */
	uint32_t tgid;	       /* 0: of several processes */
	uint8_t state;	       /* known_wait.h */
	bool free;	       /* a thread that waits there would take new work */
	const char *fn;	       /* borrowed; NULL: no name */
	const char *caller;    /* borrowed; of the heaviest stack; NULL: none is known */
	uint64_t heaviest_ns;
	uint64_t calm_ns, ns; /* in the phases before and during */
};

struct pool_places {
	struct pool_place *rows; /* owned */
	size_t count, space;
	struct idmap by_hash; /* hash -> number of the row plus 1 */
	uint64_t left_out;    /* stacks without a row */
};

/* A pool without a free thread, which had some when calm. */
struct pool_starved {
	const struct pool_place *busy; /* where most of its threads are */
	const struct pool_place *calm; /* where they waited for work when calm */
	uint64_t threads;	       /* that wait elsewhere than for work, in the mean */
	uint64_t all_ns, free_ns;      /* of its waits in the phase during; of these, for work */
	uint64_t calm_all_ns;	       /* of its waits in the phase before */
};

void pool_places_init(struct pool_places *p);
void pool_places_done(struct pool_places *p);

/*
 * Adds a stack of threads that do not run; `wait` is their wait. Where it is not `whole`, their own
 * function is not known: such threads may be free.
 */
void pool_places_add(struct pool_places *p, const struct stack *stack,
		     const struct known_wait *wait, bool whole);

/*
 * Finds the pool with the most threads that waited for work when calm, at least two, and do not in
 * the stall: most of them are in one and the same other wait. The phases lasted so long; calm_ms 0:
 * there was no calm time. False: there is none.
 */
bool pool_places_starved(const struct pool_places *p, uint64_t during_ms, uint64_t calm_ms,
			 struct pool_starved *ret_starved);

#endif
