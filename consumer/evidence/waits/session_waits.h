/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_waits.h: sums the waits of a session's threads, by function and kind of wait, for
 * session.end. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_SESSION_WAITS_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_SESSION_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/evidence/waits/known_wait.h"
#include "consumer/evidence/waits/wait_places.h"
#include "consumer/sampling/stack_table.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/session/session_result.h"
#include "shared/rules/rules.h"
#include "shared/tools/idmap.h"

struct jsonw;

#define SESSION_WAITS_ROWS 1024 /* pairs of function and state; the others have no row */
#define SESSION_WAITS_TOP  8

/* Bytes of session.end that its last keys take, without the lists that use the space left. */
#define SESSION_WAITS_AFTER_BYTES 1100

struct session_waits {
	struct session_wait {
		const char *fn, *module; /* borrowed; fn NULL: no name */
		uint64_t weight_ns;
		uint64_t calm_ns; /* in the phase `before`, scaled to the length of `during` */
		/*
		 * Of all its stacks. A thread in two of them counts twice until
		 * session_waits_count_threads.
		 */
		uint64_t threads;
		/* Of its first stack, and the part of weight_ns behind it; 0: not known. */
		uint32_t holder;
		uint64_t held_ns;
		/* The rest is of the heaviest stack. */
		uint64_t heaviest_ns;
		int32_t line;				 /* of `fn`, in `module`; 0: unknown */
		const char *callers[KNOWN_WAIT_CALLERS]; /* borrowed */
		const struct look_on *on;		 /* borrowed; NULL: unknown */
		uint8_t state;				 /* known_wait.h, like the rest */
		bool idle, condition;
	} * rows; /* owned */
	size_t count;
	struct idmap by_hash;
	uint32_t *row_of; /* owned; by stack number: row number plus 1; 0: none */
	size_t row_of_space;
	uint64_t during_ms, calm_ms; /* lengths of the phases; calm_ms 0: no baseline */
	uint64_t calm_passes;	     /* sampling passes in the baseline */
	uint64_t state_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_]; /* in `during`, like the rows */
	uint64_t onset_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_];
	/* Part of state_ns: waits with another state than that of their system call. */
	uint64_t moved_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_];
	uint64_t condition_ns; /* part of lock time: on condition variables */
	struct wait_places places;
};

/* Returns 0 or -ENOMEM. Release with session_waits_done. */
int session_waits_init(struct session_waits *s);
void session_waits_done(struct session_waits *s);

/*
 * Sets the lengths of the phases. Call before adding stacks. There is no baseline without samples
 * of the recorder in it; if a watch is younger than the pre-roll, the baseline begins with its
 * first sample.
 */
void session_waits_set_phases(struct session_waits *s, const struct session_result *r);

/*
 * Adds a stack of waiting threads; `wait` is their wait. Add the stacks of `during` first: stacks
 * of other phases count only at places where threads waited in `during`.
 */
void session_waits_add(struct session_waits *s, const struct stack *stack,
		       const struct known_wait *wait);

/*
 * Counts each thread that waited in several stacks of a row only once. Call once, after all stacks
 * of `stacks` are added and before session_waits_write. Without memory, threads stay counted once
 * per stack.
 */
void session_waits_count_threads(struct session_waits *s, const struct stack_table *stacks);

/* Returns the row that a stack was added to; NULL: none. */
const struct session_wait *session_waits_row(const struct session_waits *s,
					     const struct stack *stack);

/* Returns whether one holder of a lock, read from the lock, had nine tenths of the row's time. */
bool session_waits_has_holder(const struct session_wait *row);

/*
 * Writes the object of the row's heaviest stack (wait_objects.h). The holder of a lock follows only
 * where nine tenths of the row's time were behind it. Returns the length.
 */
int session_waits_say_on(const struct session_wait *row, char *text, size_t space);

/*
 * Writes the row's function, its callers, and the object of its wait: "write_journal (called by
 * commit) on the file wal.1". Returns the length.
 */
int session_waits_say_place(const struct session_wait *row, char *text, size_t space);

/* Returns the time of waits in onset and during that the pressure of `resource` measures. */
uint64_t session_waits_of(const struct session_waits *s, enum resource resource);

/*
 * Writes, as a clause of the headline, the time of waits that the pressure of `resource` measures,
 * and the place with the most of it. If any place grew over the baseline, it is the place that grew
 * most. RESOURCE_COUNT_: writes this for all other waits, except waits for work. Such a wait is on
 * a condition variable only if no other wait was at least a tenth as long as one thread's wait
 * there. `part_ns`, indexed by enum account_part, has the exact times of the session's threads;
 * NULL: none, and the sampled times are written. Returns the length; 0 if the threads did not wait.
 */
int session_waits_clause(const struct session_waits *s, enum resource resource,
			 const uint64_t *part_ns, char *text, size_t space);

/*
 * Writes, as a clause of the headline, that threads waited for work or for answers, and the place
 * with most of it: nothing else is known about a service that ran little and waited for nothing
 * else. If they waited in an epoll or poll that was judged, the clause states that no answer is due
 * there. Returns the length; 0 if they did not wait.
 */
int session_waits_idle_clause(const struct session_waits *s, char *text, size_t space);

/* Returns the row in `state` that grew most and is not idle, or NULL. */
const struct session_wait *session_waits_top(const struct session_waits *s, uint8_t state);

/*
 * Writes ", 80 % of it in write_journal (called by commit) on the file wal.1", or "for answers of
 * 10.0.0.7:8080 (12 connections, ...) in ...", for the row in `state` that grew most; the share is
 * that of of_ns, or of all waits in `state` if these are less. Returns the length; 0 if there is
 * none.
 */
int session_waits_place(const struct session_waits *s, uint8_t state, uint64_t of_ns, char *text,
			size_t space);

/*
 * Writes `waits`: the heaviest rows, then rows on condition variables, then rows that wait for
 * work; as many as fit into seven eighths of the line.
 */
void session_waits_write(struct session_waits *s, struct jsonw *w);

#endif
