/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arming.h: what runs in the kernel follows need. A sampling event is a descriptor that the broker
 * opened: while nothing is watched there is none; while something is, two per online CPU, of which
 * one runs: at the recorder's rate, in a session at the full rate (ticker.h). A signal's programs
 * are link descriptors, held while a session wants them. Our death closes all of them. Main thread
 * only.
 *
 * Where the loader's own events tick always (`load --always oncpu`) nothing is opened here.
 */
#ifndef TROCAR_CONSUMER_ARMING_H
#define TROCAR_CONSUMER_ARMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/ticker.h"
#include "shared/broker.h"
#include "shared/rules.h"

struct agent;
struct jsonw;
struct loop_source;

/* Who makes the CPUs tick. */
enum arming_by {
	ARMING_NONE,
	ARMING_BROKER,
	ARMING_ALWAYS,
};

/* The programs of one signal. */
struct arming_signal {
	int fds[BROKER_DESCRIPTORS_MAX];
	size_t n_fds;
	unsigned int holders; /* sessions that want it */
};

struct arming {
	struct ticker *events; /* owned, ascending by CPU */
	size_t n_events;
	struct loop_source *spread; /* while their phases are being spread, else NULL */
	size_t spread_steps;	    /* done of that */
	size_t n_online;	    /* CPUs, at the last look */
	unsigned int captures;	    /* sessions that run */
	uint64_t since_ns;	    /* all CPUs have ticked since; 0: they do not */
	uint64_t retry_ns;	    /* what is missing is not asked for again before */
	const char *why;	    /* why a CPU has no event; NULL: all have */
	const char *said;	    /* what the last error line said of it; NULL: nothing */
	struct arming_signal signals[SIGNAL_COUNT_];
};

/* Sets control.divisor; opens nothing. After the maps are ours. */
void arming_init(struct agent *a);

/* Closes everything; touches no map. */
void arming_done(struct agent *a);

/* After a watch came or went: opens what is needed, closes what is not. */
void arming_follow(struct agent *a);

/* Asks again for what could not be opened, once its time has come; after every drain. */
void arming_retry(struct agent *a);

/* The same without waiting for its time: the broker is there again. */
void arming_again(struct agent *a);

/* Reads which CPUs are online and follows them; at every scan and session. */
void arming_look(struct agent *a);

/*
 * Of a session, around its time: all events to the full rate, and back when no other runs. Begin
 * before its slot's state says capture, end after it says recorder: a sample of the capture is then
 * always one of a full-rate tick.
 */
void arming_capture_begin(struct agent *a);
void arming_capture_end(struct agent *a);

/*
 * Attaches the programs of a signal, or joins who has them already. 0, or -errno as link.h with the
 * reason. Each 0 wants one arming_signal_drop.
 */
int arming_signal_hold(struct agent *a, enum signal_bit signal, const char **ret_why);
void arming_signal_drop(struct agent *a, enum signal_bit signal);

/*
 * How many CPUs have a sampling event and how many have none, by now; *ret_why says why (a literal,
 * NULL when none is missing). Of the loader's own events it is known how many there are.
 */
void arming_state(const struct agent *a, size_t *ret_ticking, size_t *ret_missing,
		  const char **ret_why);

/* Who makes the CPUs tick, and a sentence about it. */
enum arming_by arming_by(const struct agent *a, const char **ret_reason);

/* Since when every online CPU has ticked without a gap; UINT64_MAX when they do not. */
uint64_t arming_since_ns(const struct agent *a);

/* "sampling": {...}, in agent.start, watch.start, session.start and `status`. */
void arming_write(const struct agent *a, struct jsonw *w);

/* "broker": {...} of `status`. */
void arming_write_broker(const struct agent *a, struct jsonw *w);

#endif
