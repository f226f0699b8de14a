/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sampler.h: the perf events that make the CPUs tick follow need. An event is a descriptor that the
 * broker opened: while nothing is watched there is none; while something is, two per online CPU, of
 * which one runs: at the recorder's rate, in a session at the full rate (cpu_event.h). Our death
 * closes all of them. Main thread only.
 *
 * Where the loader's own events tick always (`load --always oncpu`) nothing is opened here.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_SAMPLER_H
#define TROCAR_CONSUMER_SAMPLING_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/output/event_line.h"
#include "consumer/sampling/cpu_event.h"

struct broker_client;

/* Who makes the CPUs tick. */
enum sampler_by {
	SAMPLER_NONE,
	SAMPLER_BROKER,
	SAMPLER_ALWAYS,
};

struct sampler {
	const struct pinned_maps *pins; /* borrowed, as the next three */
	struct loop *loop;
	struct broker_client *link; /* to the broker */
	const struct lines *lines;
	bool watched;		  /* something is */
	struct cpu_event *events; /* owned, ascending by CPU */
	size_t n_events;
	struct loop_source *spread; /* while their phases are being spread, else NULL */
	size_t spread_steps;	    /* done of that */
	size_t n_online;	    /* CPUs, at the last look */
	unsigned int captures;	    /* sessions that run */
	uint64_t since_ns;	    /* all CPUs have ticked since; 0: they do not */
	uint64_t retry_ns;	    /* what is missing is not asked for again before */
	const char *why;	    /* why a CPU has no event; NULL: all have */
	const char *said;	    /* what the last error line said of it; NULL: nothing */
};

/* Takes its collaborators, all borrowed. Opens nothing. */
void sampler_init(struct sampler *s, const struct pinned_maps *pins, struct loop *loop,
		  struct broker_client *link, const struct lines *lines);

/* Closes everything; touches no map. */
void sampler_done(struct sampler *s);

/* Sets control.divisor. After the maps are ours. */
void sampler_start(struct sampler *s);

/* Whether something is watched: opens what is needed, closes what is not. */
void sampler_watched(struct sampler *s, bool watched);

/* Asks again for what could not be opened, once its time has come; after every drain. */
void sampler_retry(struct sampler *s);

/* The same without waiting for its time: the broker is there again. */
void sampler_again(struct sampler *s);

/* Reads which CPUs are online and follows them; at every scan and session. */
void sampler_look(struct sampler *s);

/*
 * Of a session, around its time: all events to the full rate, and back when no other runs. Begin
 * before its slot's state says capture, end after it says recorder: a sample of the capture is then
 * always one of a full-rate tick.
 */
void sampler_capture_begin(struct sampler *s);
void sampler_capture_end(struct sampler *s);

/*
 * How many CPUs have a sampling event and how many have none, by now; *ret_why says why (a literal,
 * NULL when none is missing). Of the loader's own events it is known how many there are.
 */
void sampler_state(const struct sampler *s, size_t *ret_ticking, size_t *ret_missing,
		   const char **ret_why);

/* Who makes the CPUs tick, and a sentence about it. */
enum sampler_by sampler_by(const struct sampler *s, const char **ret_reason);

/* Since when every online CPU has ticked without a gap; UINT64_MAX when they do not. */
uint64_t sampler_since_ns(const struct sampler *s);

#endif
