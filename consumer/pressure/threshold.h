/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threshold.h: what is followed of one watch's pressure. A threshold is a resource, some or full, a
 * stall and a window; rules of the watch that ask for the same share it. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PRESSURE_THRESHOLD_H
#define TROCAR_CONSUMER_PRESSURE_THRESHOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/kernel/psi.h"
#include "shared/rules/rules.h"

struct followed;
struct loop_source;
struct pressure;
struct watch;

enum threshold_way {
	THRESHOLD_WAITING, /* followed by scan until its turn comes, or the next try */
	THRESHOLD_TRIGGER,
	THRESHOLD_SCAN, /* no further try as long as the watch and the rule are */
};

struct threshold {
	struct threshold *next; /* of the same watch */
	struct followed *of;
	enum resource resource;
	bool full;
	bool wanted; /* by a rule in the watch; only while that is being found out */
	uint32_t stall_ms, window_ms;
	enum threshold_way way;
	const char *why; /* it is not followed by a trigger */
	int fd;		 /* with the trigger, owned; -1 without */
	struct loop_source *source;
	struct psi_point crossed; /* last crossing that was acted on; all 0 for none */
	uint64_t look_ns;	  /* the kernel told too early: read until then, 0 for not */
};

/* What is followed of one watch; one per slot. */
struct followed {
	struct pressure *pressure;    /* whose it is */
	struct watch *watch;	      /* NULL: the slot has none that is followed */
	struct threshold *thresholds; /* of all its rules, each once; owned */
	struct followed_file {
		int fd;			      /* -1: not followed, or not readable */
		bool said;		      /* that it is not readable */
		bool again;		      /* somebody held up the look for it */
		uint32_t by_trigger, by_scan; /* thresholds, by what follows them */
		struct psi_history history;
	} file[RESOURCE_COUNT_];
};

/* All slots' of them, as those who go through them see it. */
struct followed_slots {
	struct followed *at; /* owned by struct pressure */
	uint32_t count;
};

/* True when the threshold is the one that the rule's `when` asks for. */
bool threshold_is(const struct threshold *t, const struct rule_when *when);

/* The threshold of that `when`, or NULL. */
struct threshold *threshold_find(const struct followed *f, const struct rule_when *when);

/* Adds one that waits to be opened, with the reason. NULL without memory. */
struct threshold *threshold_add(struct followed *f, const struct rule_when *when, const char *why);

/* Takes out the first one that is not wanted, the caller's to close and free; NULL: all are. */
struct threshold *threshold_take_unwanted(struct followed *f);

/* Whether one waits to be opened. */
bool threshold_waits(const struct followed *f);

/*
 * Counts what follows each resource, and makes room for the readings, of which the first, from
 * which growth counts, is made. Bits of the resources for which there was no memory: their files
 * are to be closed.
 */
uint32_t threshold_tally(struct followed *f);

/* Adds what a scan read to the history, which grows as far as the longest window may need. */
void threshold_add_reading(struct followed_file *f, uint64_t now_ns, const struct psi *psi);

#endif
