/* SPDX-License-Identifier: BSD-2-Clause */
/* offers.h: lists the selectable values, for a user that selected no line. */
#ifndef TROCAR_CTL_EVENTS_OFFERS_H
#define TROCAR_CTL_EVENTS_OFFERS_H

#include <stdio.h>

#include "ctl/events/store.h"

#define OFFERS_SHOWN 10 /* of each kind */

/* Distinct values; the first OFFERS_SHOWN are kept. */
struct offer {
	uint32_t texts[OFFERS_SHOWN]; /* of the store */
	uint64_t pids[OFFERS_SHOWN];  /* of processes, instead of texts */
	uint32_t n;
	bool more;
};

/* Values of unselected stack lines of wanted sessions. */
struct offers {
	struct offer signals, phases, comms, pids;
};

/* Notes the values of a stack line. 0, -ENOMEM, -ENOSPC. */
int offers_note(struct offers *o, struct store *store, const struct event *event);

/* Prints the noted signals, phases, threads and processes; nothing if none was noted. */
void offers_print_stacks(const struct offers *o, const struct store *store, FILE *out);

/* Prints the newest sessions of the store, selected or not. */
void offers_print_sessions(const struct store *store, FILE *out);

#endif
