/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threshold.h: the followed pressure of one watch. A threshold is a resource, some or full, a stall
 * and a window; rules of the watch with equal values share it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_THRESHOLD_H
#define TROCAR_CONSUMER_CONDITIONS_THRESHOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/kernel/psi.h"
#include "shared/rules/rules.h"

struct followed;
struct loop_source;
struct pressure_follow;
struct quiet;
struct stuck;
struct watch;

enum threshold_way {
	THRESHOLD_WAITING, /* the scan follows it until it is opened or retried */
	THRESHOLD_TRIGGER,
	THRESHOLD_SCAN, /* no further try while the watch has the rule */
};

struct threshold {
	struct threshold *next; /* next threshold of the watch */
	struct followed *of;
	enum resource resource;
	bool full;
	bool wanted; /* a rule of the watch has it; valid only while thresholds are updated */
	uint32_t stall_ms, window_ms;
	enum threshold_way way;
	const char *reason; /* why no trigger follows it */
	int fd;		    /* of the trigger, owned; -1: none */
	struct loop_source *source;
	struct psi_point crossed; /* last crossing that was acted on; all 0: none */
	uint64_t look_ns;	  /* after an early notice, read until then; 0: no */
};

/* The followed state of one watch; one per slot. */
struct followed {
	struct pressure_follow *pressure; /* its owner */
	struct watch *watch;		  /* NULL: the slot has no followed watch */
	struct threshold *thresholds;	  /* of all its rules, without duplicates; owned */
	struct quiet *quiet;		  /* owned; NULL: no rule asks for its CPU time */
	struct stuck *stuck;		  /* owned; NULL: no rule asks for its threads */
	struct followed_file {
		int fd;	     /* -1: not followed, or not readable */
		bool logged; /* the line about an unreadable file was written */
		bool retry;  /* -EBUSY: the lookup in a user's cgroup was delayed */
		bool failed; /* a reading of the open file failed */
		bool off;    /* the cgroup exists without this file: cgroup.pressure is 0 */
		uint32_t by_trigger, by_scan; /* thresholds, by the way they are followed */
		struct psi_history history;
	} file[RESOURCE_COUNT_];
};

/* The structs of all slots, for iteration. */
struct followed_slots {
	struct followed *at; /* owned by struct pressure_follow */
	uint32_t count;
};

/* Returns whether the threshold equals the rule's `when`. */
bool threshold_is(const struct threshold *t, const struct rule_when *when);

/* Returns the threshold that equals `when`, or NULL. */
struct threshold *threshold_find(const struct followed *f, const struct rule_when *when);

/*
 * Adds a threshold that waits to be opened; `why` is the reason of its wait. Returns NULL without
 * memory.
 */
struct threshold *threshold_add(struct followed *f, const struct rule_when *when, const char *why);

/*
 * Removes the first threshold that no rule wants from the list; the caller closes and frees it.
 * Returns NULL if all are wanted.
 */
struct threshold *threshold_take_unwanted(struct followed *f);

/* Returns whether a threshold waits to be opened. */
bool threshold_waits(const struct followed *f);

/*
 * Counts by_trigger and by_scan of each resource, and makes space for the histories. Adds the first
 * reading, from which growth counts, to an empty history. Returns the bits of the resources without
 * memory: the caller closes their files.
 */
uint32_t threshold_tally(struct followed *f);

/* Adds a reading of the scan to the history, which grows to cover the longest window. */
void threshold_add_reading(struct followed_file *f, uint64_t now_ns, const struct psi *psi);

#endif
