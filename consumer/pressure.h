/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure.h: following the pressure of the watched cgroups by scan: a tenth of the shortest
 * window, not under 100 ms, and only while the system-wide total of a resource moves. Between, it
 * sleeps: on an unprivileged trigger on /proc/pressure where the kernel has it (6.4 and newer),
 * else on a timer. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PRESSURE_H
#define TROCAR_CONSUMER_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/psi.h"
#include "shared/rules.h"

struct agent;
struct loop_source;

struct pressure {
	struct loop_source *timer;
	uint64_t every_ns; /* interval of the scan, 0: nothing to follow */
	bool asleep;
	uint64_t slept_ns; /* since when */
	struct pressure_system {
		int fd;		/* /proc/pressure/X read-only, -1 when not readable */
		int error;	/* why not: -errno */
		int trigger_fd; /* poll(2) descriptor with a trigger, -1 without */
		struct loop_source *source;
		uint64_t total_us; /* last seen, "some" */
		uint64_t moved_ns; /* when it last moved */
		bool needed;	   /* a rule in a watch asks for it */
	} system[RESOURCE_COUNT_];
};

/* Opens the system-wide files and triggers; before the lock-down. 0 or -errno (never for PSI
 * absent). */
int pressure_open(struct agent *a);
void pressure_done(struct agent *a);

/* After a change of watches or rules: what is needed and how often. */
void pressure_refresh(struct agent *a);

/* "trigger" or "timer": what wakes a sleeping scan; the reason goes to *ret_reason. */
const char *pressure_sleep(const struct agent *a, const char **ret_reason);

/* Milliseconds between scans, 0 when nothing is followed. */
uint64_t pressure_every_ms(const struct agent *a);

/* Reads the system-wide file of a resource now. 0 or -errno. */
int pressure_system(const struct agent *a, enum resource resource, struct psi *ret_psi);

#endif
