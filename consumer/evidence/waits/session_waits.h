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

#define SESSION_WAITS_ROWS 1024 /* pairs of function and state; the rest is in no row */
#define SESSION_WAITS_TOP  8

struct session_waits {
	struct session_wait {
		const char *fn, *module; /* borrowed; fn NULL: no name */
		uint64_t weight_ns;
		uint64_t calm_ns; /* in the phase before, in a time as long as during */
		/* of all its stacks: one that waited in two of them counts twice until
		 * session_waits_count_threads */
		uint64_t threads;
		/* the heaviest stack's */
		uint64_t heaviest_ns;
		const char *callers[KNOWN_WAIT_CALLERS]; /* borrowed */
		const struct look_on *on;		 /* borrowed; NULL: not known */
		uint8_t state;				 /* known_wait.h, as the rest */
		bool idle, condition;
	} * rows; /* owned */
	size_t count;
	struct idmap by_hash;
	uint32_t *row_of; /* owned; by number of a stack: its row plus 1; 0: none */
	size_t row_of_space;
	uint64_t during_ms, calm_ms; /* lengths of the phases; calm_ms 0: there was no calm time */
	uint64_t state_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_]; /* during, as the rows */
	uint64_t onset_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_];
	/* of state_ns: knowledge beyond the system call */
	uint64_t moved_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_];
	uint64_t condition_ns; /* of locks: on condition variables */
	struct wait_places places;
};

/* Returns 0 or -ENOMEM. */
int session_waits_init(struct session_waits *s);
void session_waits_done(struct session_waits *s);

/*
 * Sets the lengths of the phases. There is no calm time without looks of the recorder in it; for a
 * watch that is younger than the pre-roll it begins with the first look. Before the stacks.
 */
void session_waits_set_phases(struct session_waits *s, const struct session_result *r);

/*
 * Adds a stack of waiting threads; `wait` is their wait. Those of during first: of the others only
 * places that are waited in count.
 */
void session_waits_add(struct session_waits *s, const struct stack *stack,
		       const struct known_wait *wait);

/*
 * Counts a thread that waited in several stacks of a row once. Call once, after the stacks of
 * `stacks` and before session_waits_write. Without memory they stay counted by stack.
 */
void session_waits_count_threads(struct session_waits *s, const struct stack_table *stacks);

/* Returns the time of waits that the pressure of `resource` measures, in onset and during. */
uint64_t session_waits_of(const struct session_waits *s, enum resource resource);

/*
 * Writes the time of waits that the pressure of `resource` measures, and where most of it was, as a
 * clause of the headline: where it is most more than when calm, if it is more anywhere.
 * RESOURCE_COUNT_: likewise for their other waits, unless for work; on a condition variable only
 * where no other wait was a tenth as long as a thread's there. `part_ns`, by enum account_part, are
 * the exact times of the session's threads; NULL: there are none, and the looks' own times are
 * written. Returns the length; 0: they did not wait.
 */
int session_waits_clause(const struct session_waits *s, enum resource resource,
			 const uint64_t *part_ns, char *text, size_t space);

/*
 * Writes that threads waited for work or for answers, and where most of it, as a clause of the
 * headline: it is all that is known of a service that ran little and waited for nothing else. Where
 * they waited in an epoll or poll that was judged, that no answer is owed there.
 * Returns the length; 0: they did not.
 */
int session_waits_idle_clause(const struct session_waits *s, char *text, size_t space);

/* Returns the row of that state that has grown most and is not idle, or NULL. */
const struct session_wait *session_waits_top(const struct session_waits *s, uint8_t state);

/*
 * Writes ", 80 % of it in write_journal (called by commit) on the file wal.1", or "for answers of
 * 10.0.0.7:8080 (12 connections, ...) in ...", of the row of that state that has grown most.
 * Returns the length; 0: there is none.
 */
int session_waits_place(const struct session_waits *s, uint8_t state, char *text, size_t space);

/*
 * Writes `waits`, the heaviest rows; behind them those on condition variables, and last those that
 * wait for work: as many as fit into seven eighths of the line.
 */
void session_waits_write(struct session_waits *s, struct jsonw *w);

#endif
