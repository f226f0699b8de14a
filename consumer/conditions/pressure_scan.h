/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure_scan.h: reads the pressure files of thresholds without a trigger by timer: every tenth
 * of the shortest window, but at least 100 ms apart, and only while the system-wide total of a
 * resource grows. Otherwise the scan sleeps until an unprivileged trigger on /proc/pressure fires,
 * or, on kernels without it (before 6.4), until the next timer tick. If /proc/pressure cannot be
 * read, it never sleeps. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_PRESSURE_SCAN_H
#define TROCAR_CONSUMER_CONDITIONS_PRESSURE_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/conditions/crossing.h"
#include "consumer/conditions/threshold.h"
#include "consumer/io/loop.h"
#include "consumer/kernel/psi.h"
#include "shared/rules/rules.h"

struct pressure_scan {
	const struct followed_slots *slots; /* borrowed */
	struct crossings *crossings;	    /* borrowed */
	struct loop_source *timer;	    /* owned */
	uint64_t every_ns;		    /* interval; 0: nothing to follow */
	bool asleep;
	struct pressure_system {
		int fd;		/* /proc/pressure/X read-only, -1 if not readable */
		int error;	/* why fd is -1: -errno */
		int trigger_fd; /* open for poll(2) with a trigger; -1: none */
		struct loop_source *source;
		uint64_t total_us; /* of "some", at the last check */
		uint64_t moved_ns; /* when total_us last grew */
		bool needed;	   /* the scan follows a threshold of it */
	} system[RESOURCE_COUNT_];
};

/*
 * Opens the system-wide files and triggers. Call before the lock-down. Returns 0 or -errno (a
 * kernel without PSI is no error). Release with pressure_scan_done.
 */
int pressure_scan_open(struct pressure_scan *s, struct loop *loop);
void pressure_scan_done(struct pressure_scan *s);

/*
 * Call after the set of scanned thresholds changed: recomputes the needed resources and the
 * interval.
 */
void pressure_scan_refresh(struct pressure_scan *s);

/*
 * Does the same as pressure_scan_refresh if only the thresholds of one watch were added, without
 * visiting other watches.
 */
void pressure_scan_refresh_new(struct pressure_scan *s, const struct followed *f);

/*
 * Returns the source that wakes a sleeping scan, "trigger" or "timer"; *ret_reason is a sentence
 * about it.
 */
const char *pressure_scan_sleep(const struct pressure_scan *s, const char **ret_reason);

/* Reads the system-wide file of a resource now. Returns 0 or -errno. */
int pressure_scan_system(const struct pressure_scan *s, enum resource resource,
			 struct psi *ret_psi);

#endif
