/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sampler.h: opens, re-rates and closes the perf events by which CPUs are sampled, as the need
 * changes. An event is a descriptor that the broker opened. While nothing is watched there is none
 * that runs; while something is, there are two per online CPU, of which one runs: at the recorder's
 * rate, or at the full rate while a session runs (cpu_event.h). When the consumer dies the kernel
 * closes all of them. Main thread only.
 *
 * Where the loader's own events tick always (`load --always oncpu`) this file opens nothing.
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
#include "shared/tools/macro.h"

struct broker_client;

/* How long stopped events are kept open. */
#define SAMPLER_REST_NS (5 * NSEC_PER_SEC)

/* The opener of the events that sample the CPUs. */
enum sampler_by {
	SAMPLER_NONE,
	SAMPLER_BROKER,
	SAMPLER_ALWAYS,
};

struct sampler {
	const struct pinned_maps *pins; /* borrowed, as the next three */
	struct loop *loop;
	struct broker_client *link; /* borrowed */
	const struct event_lines *lines;
	bool watched;		  /* some cgroup is watched */
	struct loop_source *rest; /* timer that closes the stopped events; NULL: they run */
	struct cpu_event *events; /* owned, ascending by CPU */
	size_t n_events;
	struct loop_source *spread; /* timer that ends cpu_event_spread CPU by CPU; else NULL */
	size_t spread_steps;	    /* of SPREAD_STEPS, done */
	size_t n_online;	    /* CPUs that were online at the last look */
	unsigned int captures;	    /* running sessions */
	uint64_t since_ns;	    /* every online CPU has ticked since; 0: some does not */
	uint64_t retry_ns;	    /* opens no missing event before this time */
	const char *why;	    /* why a CPU has no event; NULL: every one has */
	const char *said;	    /* reason in the last error line; NULL: none */
};

/* Stores its collaborators, all borrowed. Opens nothing. */
void sampler_init(struct sampler *s, const struct pinned_maps *pins, struct loop *loop,
		  struct broker_client *link, const struct event_lines *lines);

/* Closes all events; touches no map. */
void sampler_done(struct sampler *s);

/* Sets control.divisor. Call after the maps are taken over. */
void sampler_start(struct sampler *s);

/*
 * Takes whether something is watched: opens the events that are needed, or stops all and closes
 * them SAMPLER_REST_NS later. A watch before then starts them again and asks the broker for
 * nothing: watches may come and go many times a second.
 */
void sampler_watched(struct sampler *s, bool watched);

/* Opens the events that are missing, once retry_ns has passed. Call after every drain. */
void sampler_retry(struct sampler *s);

/* Opens the missing events now, without waiting for retry_ns: the broker is back. */
void sampler_again(struct sampler *s);

/* Reads which CPUs are online; opens and closes events to match. Call at every scan and session. */
void sampler_look(struct sampler *s);

/*
 * Switches all events to the full rate when the first session begins, and back when the last one
 * ends. Call sampler_capture_begin before the session's slot is set to capture, and
 * sampler_capture_end after it is set to recorder: then every sample of the capture comes from a
 * full-rate tick.
 */
void sampler_capture_begin(struct sampler *s);
void sampler_capture_end(struct sampler *s);

/*
 * Counts the CPUs that have a sampling event and those that have none. *ret_why has the reason of a
 * missing one (a literal; NULL when none is). The loader records in the ABI how many events of its
 * own tick.
 */
void sampler_state(const struct sampler *s, size_t *ret_ticking, size_t *ret_missing,
		   const char **ret_why);

/* Returns the source of the CPU ticks, and in *ret_reason a sentence about it (a literal). */
enum sampler_by sampler_by(const struct sampler *s, const char **ret_reason);

/*
 * Returns since when every online CPU has ticked without a gap; UINT64_MAX when some does not.
 * CLOCK_MONOTONIC.
 */
uint64_t sampler_since_ns(const struct sampler *s);

#endif
