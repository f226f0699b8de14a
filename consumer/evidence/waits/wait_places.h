/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_places.h: the places where the threads of one process and name waited, by the kind of their
 * system call: the function, the object of the wait, and the kind of wait that both prove. From
 * off-CPU samples. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_WAIT_PLACES_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_WAIT_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/waits/known_wait.h"
#include "consumer/sampling/stack_table.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/idmap.h"

#define WAIT_PLACES_MAX 4096 /* places beyond this have no row */

struct wait_place {
	uint32_t tgid;
	char comm[COMM_BYTES];
	uint8_t part;	       /* by the system call: wait_kind.h, as in an account */
	uint64_t weight_ns;    /* in the phase during */
	uint64_t idle_ns;      /* part of weight_ns: nothing to do, and no thread waited for them */
	uint64_t condition_ns; /* part of weight_ns: on condition variables */
	/* The rest is of the heaviest stack, preferably one that was not idle. */
	uint64_t heaviest_ns;
	uint8_t state;				 /* wait_kind.h: refined by function and object */
	const char *fn, *module;		 /* borrowed; fn NULL: no name */
	int32_t line;				 /* of `fn`, in `module`; 0: unknown */
	const char *callers[KNOWN_WAIT_CALLERS]; /* borrowed */
	const struct look_on *on;		 /* borrowed; NULL: unknown */
	bool busy;				 /* this stack was not idle */
};

struct wait_places {
	struct wait_place *rows; /* owned */
	size_t count, space;
	struct idmap by_hash; /* hash -> number of the row plus 1 */
	uint64_t left_out;    /* stacks without a row */
};

void wait_places_init(struct wait_places *p);
void wait_places_done(struct wait_places *p);

/* Adds a stack of blocked threads; `wait` is their wait. */
void wait_places_add(struct wait_places *p, const struct stack *stack,
		     const struct known_wait *wait);

/*
 * Returns the place where threads of a process and name (COMM_BYTES bytes) waited in this part;
 * NULL if no sample found one.
 */
const struct wait_place *wait_places_find(const struct wait_places *p, uint32_t tgid,
					  const char *comm, uint8_t part);

/* Returns whether the threads there had nothing to do for most of the time. */
bool wait_place_is_idle(const struct wait_place *place);

/* Returns whether most of the time was on condition variables. */
bool wait_place_is_condition(const struct wait_place *place);

/*
 * Writes " in write_journal (called by commit) on the file wal.1", or "for answers of ... in ...".
 * Returns the length.
 */
int wait_place_say(const struct wait_place *place, char *text, size_t space);

#endif
