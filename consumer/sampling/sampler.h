/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sampler.h: opens, re-rates and closes the perf events that sample CPUs, as needed. An event is a
 * descriptor that the broker opened. While nothing is watched, no event runs. While anything is
 * watched, each online CPU has two events, one of which runs: at the recorder's rate, or at the
 * full rate while a session runs (cpu_event.h). When the consumer dies the kernel closes all of
 * them. Main thread only.
 *
 * If the loader's own events always tick (`load --always oncpu`), this file opens nothing.
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

/* Time that stopped events are kept open. */
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
	struct broker_client *broker; /* borrowed */
	const struct event_lines *lines;
	bool watched;		  /* at least one cgroup is watched */
	struct loop_source *rest; /* timer that closes the stopped events; NULL: they run */
	struct cpu_event *events; /* owned, ascending by CPU */
	size_t n_events;
	struct loop_source *spread; /* timer that ends cpu_event_spread CPU by CPU; else NULL */
	size_t spread_steps;	    /* steps done, of SPREAD_STEPS */
	size_t n_online;	    /* CPUs that were online at the last check */
	unsigned int captures;	    /* running sessions */
	uint64_t since_ns; /* every online CPU has ticked since then; 0: some CPU does not */
	uint64_t retry_ns; /* opens no missing event before this time */
	const char *missing_reason; /* why a CPU has no event; NULL: every CPU has one */
	const char *logged_reason;  /* reason in the last error line; NULL: none */
};

/* Stores its collaborators, all borrowed. Opens nothing. */
void sampler_init(struct sampler *s, const struct pinned_maps *pins, struct loop *loop,
		  struct broker_client *link, const struct event_lines *lines);

/* Closes all events; touches no map. */
void sampler_done(struct sampler *s);

/* Sets control.divisor. Call after the maps are taken over. */
void sampler_start(struct sampler *s);

/*
 * Updates whether anything is watched: opens the needed events, or stops all events and closes them
 * SAMPLER_REST_NS later. A watch before then restarts them without asking the broker, because
 * watches may start and stop many times a second.
 */
void sampler_watched(struct sampler *s, bool watched);

/* Opens missing events, once retry_ns has passed. Call after every drain. */
void sampler_retry(struct sampler *s);

/* Opens missing events now, without waiting for retry_ns, because the broker is back. */
void sampler_again(struct sampler *s);

/* Reads which CPUs are online; opens and closes events to match. Call at every scan and session. */
void sampler_look(struct sampler *s);

/*
 * Switches all events to the full rate when the first session begins, and back when the last one
 * ends. Call sampler_capture_begin before the session's slot is set to capture, and
 * sampler_capture_end after it is set to recorder, so that every sample of the capture comes from a
 * full-rate tick.
 */
void sampler_capture_begin(struct sampler *s);
void sampler_capture_end(struct sampler *s);

/*
 * Counts the CPUs with and without a sampling event. *ret_why is the reason of a missing one (a
 * literal; NULL if none is missing). The loader records the number of its own ticking events in the
 * ABI.
 */
void sampler_state(const struct sampler *s, size_t *ret_ticking, size_t *ret_missing,
		   const char **ret_why);

/* Returns the source of the CPU ticks, and sets *ret_reason to a sentence about it (a literal). */
enum sampler_by sampler_by(const struct sampler *s, const char **ret_reason);

/*
 * Returns the time since which every online CPU has ticked without a gap, CLOCK_MONOTONIC;
 * UINT64_MAX if some CPU does not tick.
 */
uint64_t sampler_since_ns(const struct sampler *s);

#endif
