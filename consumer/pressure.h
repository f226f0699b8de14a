/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure.h: following the pressure of the watched cgroups. A threshold is followed by a trigger
 * of the kernel where the broker opens the file (triggers.h): then nothing here wakes by itself.
 * The others are followed by scan: a tenth of the shortest window, not under 100 ms, and only while
 * the system-wide total of a resource moves. Between, the scan sleeps: on an unprivileged trigger
 * on /proc/pressure where the kernel has it (6.4 and newer), else on a timer. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PRESSURE_H
#define TROCAR_CONSUMER_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/psi.h"
#include "consumer/triggers.h"
#include "shared/rules.h"

struct agent;
struct loop_source;
struct session;
struct trigger_reason;
struct watch;
struct watch_pressure;

struct pressure {
	struct triggers triggers;
	struct loop_source *timer;
	uint64_t every_ns; /* interval of the scan, 0: nothing to follow */
	bool asleep;
	struct loop_source *look; /* after notices that came too early */
	uint64_t look_every_ns;	  /* its interval, 0 while there are none */
	uint64_t read_ns;	  /* when pressure_drained last read */
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

/* How a crossing was noticed. */
enum pressure_by {
	PRESSURE_BY_TRIGGER, /* the kernel said so */
	PRESSURE_BY_SCAN,
	PRESSURE_BY_READING, /* the totals say so, read at a drain or after a notice that came too
				early, and the kernel has not */
};

/* Opens the system-wide files and triggers; before the lock-down. 0 or -errno (never for PSI
 * absent). */
int pressure_open(struct agent *a);
void pressure_done(struct agent *a);

/* Follows what the rules of a watch ask for: files, triggers, scan; after every change of them. */
void pressure_follow(struct watch *w);

/* Opens what could not be looked up in time when the watch began; at each scan. */
void pressure_again(struct watch *w);

/* Closes what was opened for a watch. */
void pressure_unfollow(struct watch *w);

/* After a change of watches or of how they are followed: what the scan needs and how often. */
void pressure_refresh(struct agent *a);

/* The same where the thresholds of one watch came to the others: need not look at those. */
void pressure_refresh_new(const struct watch *w);

/* Counts what follows each resource of a watch, and makes room for its readings. */
void pressure_tally(struct watch *w);

/* Adds what a scan read to the history, which grows as far as the longest window may need. */
void pressure_scanned(struct watch_pressure *p, uint64_t now_ns, const struct psi *psi);

/* The kernel told of a threshold; `gone`: that its file went away. */
void pressure_notice(struct threshold *t, bool gone);

/* Reads again what the kernel told of before it was so; the agent is the context of its timer. */
void pressure_look(void *context, uint32_t events);

/*
 * After each drain of the rings: reads what triggers follow, so that there is a point shortly
 * before the next crossing, and acts on a crossing that the kernel has not told of. Opens what
 * waits.
 */
void pressure_drained(struct agent *a, uint64_t now_ns);

/* Acts on a crossed threshold: a session for each rule that asks for it, and their lines. */
void pressure_crossed(struct threshold *t, const struct psi_point *from,
		      const struct psi_point *now, enum pressure_by by);

/* The point from which growth to now is at least the threshold's; NULL when it is not. */
const struct psi_point *pressure_compare(const struct threshold *t, const struct psi_history *h,
					 const struct psi_point *now);

/* "trigger" or "timer": what wakes a sleeping scan; the reason goes to *ret_reason. */
const char *pressure_sleep(const struct agent *a, const char **ret_reason);

/* Reads the system-wide file of a resource now. 0 or -errno. */
int pressure_system(const struct agent *a, enum resource resource, struct psi *ret_psi);

/* Writes the line "pressure"; `session` is the one that it started, or NULL. */
void pressure_say(struct watch *w, const struct rule *rule, const struct trigger_reason *reason,
		  const struct session *session, enum pressure_by by);

/* Writes "follow", "follow_reason" and "pressure" of a watch; with scan_ms and sleep where a scan
 * is needed. For watch.start. */
void pressure_write_start(const struct watch *w, struct jsonw *json);

/* Writes "pressure" {resource: {"by", "some_total_us", ...}} for the method `watches`. */
void pressure_write_watch(const struct watch *w, struct jsonw *json);

/* Writes "follow", and "pressure" {...}: descriptors, threads, memory and counts. For `status`. */
void pressure_write_status(const struct agent *a, struct jsonw *json);

/* Writes the counts of agent.stop, inside of `totals`. */
void pressure_write_totals(const struct agent *a, struct jsonw *json);

#endif
