/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure_scan.h: the scan that follows the thresholds which no trigger follows: a tenth of the
 * shortest window, not under 100 ms, and only while the system-wide total of a resource moves.
 * Between, the scan sleeps: on an unprivileged trigger on /proc/pressure where the kernel has it
 * (6.4 and newer), else on a timer. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PRESSURE_PRESSURE_SCAN_H
#define TROCAR_CONSUMER_PRESSURE_PRESSURE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/io/loop.h"
#include "consumer/kernel/psi.h"
#include "consumer/pressure/crossing.h"
#include "consumer/pressure/threshold.h"
#include "shared/rules/rules.h"

struct pressure_scan {
	const struct followed_slots *slots; /* borrowed */
	struct crossings *crossings;	    /* borrowed */
	struct loop_source *timer;	    /* owned */
	uint64_t every_ns;		    /* its interval, 0: nothing to follow */
	bool asleep;
	struct pressure_system {
		int fd;		/* /proc/pressure/X read-only, -1 when not readable */
		int error;	/* why not: -errno */
		int trigger_fd; /* poll(2) descriptor with a trigger, -1 without */
		struct loop_source *source;
		uint64_t total_us; /* last seen, "some" */
		uint64_t moved_ns; /* when it last moved */
		bool needed;	   /* a threshold is followed by scan */
	} system[RESOURCE_COUNT_];
};

/* Opens the system-wide files and triggers; before the lock-down. 0 or -errno (never for PSI
 * absent). */
int pressure_scan_open(struct pressure_scan *s, struct loop *loop);
void pressure_scan_done(struct pressure_scan *s);

/* After a change of what is followed by scan: what is needed, and how often. */
void pressure_scan_refresh(struct pressure_scan *s);

/* The same where the thresholds of one watch came to the others: need not look at those. */
void pressure_scan_refresh_new(struct pressure_scan *s, const struct followed *f);

/* "trigger" or "timer": what wakes a sleeping scan; the reason goes to *ret_reason. */
const char *pressure_scan_sleep(const struct pressure_scan *s, const char **ret_reason);

/* Reads the system-wide file of a resource now. 0 or -errno. */
int pressure_scan_system(const struct pressure_scan *s, enum resource resource,
			 struct psi *ret_psi);

#endif
