/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * switches.h: the signal `switch` of a session: how often the watched tasks gave their CPU away,
 * and how often it was taken from them. Counted by a program that the broker attaches for the
 * session.
 */
#ifndef TROCAR_CONSUMER_SWITCHES_H
#define TROCAR_CONSUMER_SWITCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/abi.h"

struct jsonw;
struct session;

struct switches {
	bool wanted;
	bool counted;		    /* from begin to end, but for late_ms */
	uint64_t late_ms;	    /* so long after begin the program was attached */
	const char *why;	    /* it is not; a literal */
	struct slot_switches count; /* at begin the first, at end the difference */
};

/*
 * Attaches the program where the session wants it: when its rule names the signal, or for "auto" at
 * CPU pressure. Once the session samples already; end when it does no longer.
 */
void switches_begin(struct session *s);

/* Attaches it now where that was wanted and has failed: the broker was late. */
void switches_again(struct session *s);
void switches_end(struct session *s);

/* "switches": of session.end; nothing when it was not wanted. */
void switches_write(const struct switches *switches, struct jsonw *w);

#endif
