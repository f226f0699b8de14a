/* SPDX-License-Identifier: BSD-2-Clause */
/* offers.h: the selectable values, for a user that has selected nothing. */
#ifndef TROCAR_CTL_EVENTS_OFFERS_H
#define TROCAR_CTL_EVENTS_OFFERS_H

#include <stdio.h>

#include "ctl/events/store.h"

#define OFFERS_SHOWN 10 /* of each kind */

/* Distinct values, of which the first are kept. */
struct offer {
	uint32_t texts[OFFERS_SHOWN]; /* of the store */
	uint64_t pids[OFFERS_SHOWN];  /* of processes, in place of texts */
	uint32_t n;
	bool more;
};

/* Of stack lines of wanted sessions that were not selected. */
struct offers {
	struct offer signals, phases, comms, pids;
};

/* Notes the values of a stack line. 0, -ENOMEM, -ENOSPC. */
int offers_note(struct offers *o, struct store *store, const struct event *event);

/* A new copy of a text for a terminal; "-" for STORE_NONE. NULL: no memory. The caller frees. */
char *offers_text(const struct store *store, uint32_t text);

/* Prints which signals, phases, threads and processes there are; nothing where none was noted. */
void offers_print_stacks(const struct offers *o, const struct store *store, FILE *out);

/* Prints the newest sessions of the store, selected or not. */
void offers_print_sessions(const struct store *store, FILE *out);

#endif
