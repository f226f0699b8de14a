/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_places.h: where the threads of one process and name waited, by the kind of their system
 * call: the function, the object of its wait, and the kind of wait that both prove. By looks.
 * Report thread only.
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

#define WAIT_PLACES_MAX 4096 /* the rest has no place */

struct wait_place {
	uint32_t tgid;
	char comm[COMM_BYTES];
	uint8_t part;	       /* by the system call: wait_kind.h, as an account has it */
	uint64_t weight_ns;    /* in the phase during */
	uint64_t idle_ns;      /* of it: they had nothing to do, and no thread waited for them */
	uint64_t condition_ns; /* of it: on condition variables */
	/* Of the heaviest stack, of those that were not idle if there are any. */
	uint64_t heaviest_ns;
	uint8_t state;		 /* wait_kind.h: what it is by function and object */
	const char *fn, *module; /* borrowed; fn NULL: no name */
	const char *callers[KNOWN_WAIT_CALLERS]; /* borrowed */
	const struct look_on *on;		 /* borrowed; NULL: not known */
	bool busy;				 /* that stack was not idle */
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
 * Returns the place of threads of that process and name, COMM_BYTES of it, in such waits; NULL: no
 * look found one.
 */
const struct wait_place *wait_places_find(const struct wait_places *p, uint32_t tgid,
					  const char *comm, uint8_t part);

/* Returns whether the threads there had mostly nothing to do. */
bool wait_place_is_idle(const struct wait_place *place);

/* Returns whether most of it was on condition variables. */
bool wait_place_is_condition(const struct wait_place *place);

/*
 * Writes " in write_journal (called by commit) on the file wal.1", or "for answers of ... in ...".
 * Returns the length.
 */
int wait_place_say(const struct wait_place *place, char *text, size_t space);

#endif
