/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h: stacks that do not fit one line and come in parts. A part that is missing, as where a
 * file begins or a line was lost, costs its stack alone: of those that wait for parts the one that
 * has waited longest gives way.
 */
#ifndef TROCAR_CTL_EVENTS_PARTS_H
#define TROCAR_CTL_EVENTS_PARTS_H

#include "ctl/events/store.h"

#define PARTS_OPEN_MAX 16 /* stacks that wait; the agent runs no more sessions at a time */

/* A stack of which some parts are still missing. */
struct parts_open {
	struct store_key key;
	struct store_value value;
	uint32_t id;	      /* its stack_id, a text of the store */
	uint64_t next, parts; /* the part that must come now, 0: a free place; and how many */
	uint64_t touched;     /* when its last part came, in parts */
	uint32_t frames[STORE_FRAMES_MAX], n;
};

struct parts {
	struct parts_open *open; /* PARTS_OPEN_MAX */
	uint64_t taken;		 /* parts */
	struct pool lacking;	 /* stacks that were given up: session and id */
};

/* None waits. 0 or -ENOMEM. Release with parts_done. */
int parts_init(struct parts *p, struct pool_budget *budget);
void parts_done(struct parts *p);

/*
 * Takes the part that a stack line is, with its `n` frames; the last one counts the stack in the
 * store. 0, -ENOMEM, -ENOSPC.
 */
int parts_take(struct parts *p, struct store *store, uint32_t session, const struct event *event,
	       const uint32_t *frames, uint32_t n);

/* How many stacks lack parts: those that were given up, and those that still wait. */
uint64_t parts_lacking(const struct parts *p);

#endif
