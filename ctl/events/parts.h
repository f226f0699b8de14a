/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h: joins stacks that do not fit into one line and are split into parts. A missing part, as
 * at the begin of a file or after a lost line, costs only its own stack. If too many stacks wait
 * for parts, the one that has waited longest is given up.
 */
#ifndef TROCAR_CTL_EVENTS_PARTS_H
#define TROCAR_CTL_EVENTS_PARTS_H

#include "ctl/events/store.h"

#define PARTS_OPEN_MAX 16 /* stacks that wait; the agent runs at most this many sessions */

/* A stack of which some parts are still missing. */
struct parts_open {
	struct store_key key;
	struct store_value value;
	uint32_t id;	      /* its stack_id, a text of the store */
	uint64_t next, parts; /* the next part, 0: a free place; and the number of parts */
	uint64_t touched;     /* value of parts.taken at its last part */
	uint32_t frames[STORE_FRAMES_MAX], n;
};

struct parts {
	struct parts_open *open; /* PARTS_OPEN_MAX */
	uint64_t taken;		 /* parts taken so far */
	struct pool lacking;	 /* stacks with missing parts: session and id */
};

/* Begins without waiting stacks. 0 or -ENOMEM. Release with parts_done. */
int parts_init(struct parts *p, struct pool_budget *budget);
void parts_done(struct parts *p);

/*
 * Takes the part in a stack line, with its `n` frames; the last part counts the stack in the store.
 * 0, -ENOMEM, -ENOSPC.
 */
int parts_take(struct parts *p, struct store *store, uint32_t session, const struct event *event,
	       const uint32_t *frames, uint32_t n);

/* Returns the number of stacks that lack parts: given-up stacks, and stacks that still wait. */
uint64_t parts_lacking(const struct parts *p);

#endif
