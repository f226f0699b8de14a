/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_waits.h: sums what a session's threads waited for, by function and kind of wait, for
 * session.end. Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_WAITS_H
#define TROCAR_CONSUMER_REPORT_SESSION_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/report/frame_name.h"
#include "consumer/sampling/stack_table.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/json/jsonw.h"
#include "shared/rules/rules.h"
#include "shared/tools/idmap.h"

#define SESSION_WAITS_ROWS 1024 /* pairs of function and state; the rest is in no row */
#define SESSION_WAITS_TOP  8

struct session_waits {
	struct session_wait {
		const char *fn, *module; /* borrowed; fn NULL: no name */
		uint64_t weight_ns;
		uint64_t threads; /* of all its stacks: one that waited in two of them counts twice
				   */
		uint8_t state;	  /* wait_kind.h */
		bool idle;
	} * rows; /* owned */
	size_t count;
	struct idmap by_hash;
	uint64_t state_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_]; /* during, as the rows */
	uint64_t onset_ns[WAIT_BLOCKED + WAIT_KIND_COUNT_];
};

/* Returns 0 or -ENOMEM. */
int session_waits_init(struct session_waits *s);
void session_waits_done(struct session_waits *s);

/*
 * Adds a stack of waiting threads, which are `idle` or not (wait_objects.h); `frames` are its `n`
 * named frames.
 */
void session_waits_add(struct session_waits *s, const struct stack *stack, bool idle,
		       const struct named_frame *frames, size_t n);

/*
 * Returns the time that threads waited for what the pressure of `resource` measures, in onset and
 * during.
 */
uint64_t session_waits_of(const struct session_waits *s, enum resource resource);

/*
 * Writes for how long threads waited for what the pressure of `resource` measures, and where most
 * of it, as a clause of the headline. RESOURCE_COUNT_: for what they waited longest, unless that is
 * work. `part_ns`, by enum account_part, are the exact times of the session's threads; NULL: there
 * are none, and the looks' own times are said. Returns the length; 0: they did not wait.
 */
int session_waits_clause(const struct session_waits *s, enum resource resource,
			 const uint64_t *part_ns, char *text, size_t space);

/* Writes `waits`, the heaviest rows; those that wait for work come last. */
void session_waits_write(struct session_waits *s, struct jsonw *w);

#endif
