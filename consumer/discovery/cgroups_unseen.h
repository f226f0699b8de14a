/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups_unseen.h: reports the parts of the cgroup hierarchy that the consumer could not see: an
 * error line for each kind when it begins or grows, and the object `cgroups` of the method
 * `status`. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_CGROUPS_UNSEEN_H
#define TROCAR_CONSUMER_DISCOVERY_CGROUPS_UNSEEN_H

#include <stdint.h>

struct jsonw;

struct cgroups;
struct event_lines;

/* Seconds between two lines of one kind: users can open and close their cgroups at any rate. */
#define CGROUPS_UNSEEN_EVERY_S 300

enum unseen_kind {
	UNSEEN_DIRECTORIES, /* directories that a walk could not read */
	UNSEEN_REST,	    /* directories beyond a limit of the walk itself */
	UNSEEN_OCCUPANCY,   /* watched cgroups that may be populated or not */
	UNSEEN_ROOT,	    /* the hierarchy itself could not be read */
	UNSEEN_COUNT_,
};

/* The counts that the lines have reported, by kind. */
struct cgroups_unseen {
	const struct cgroups *cgroups; /* borrowed, as the next member */
	const struct event_lines *lines;
	struct {
		uint64_t count;
		uint64_t time_ns; /* of the last line; 0: none yet */
	} said[UNSEEN_COUNT_];
};

/*
 * Writes the lines about cgroups that the last walk and scan could not see. Call after each scan.
 */
void cgroups_unseen_check(struct cgroups_unseen *u, uint64_t now_ns);

/* Writes the object `cgroups` of the method `status`. */
void cgroups_unseen_write(const struct cgroups_unseen *u, struct jsonw *w);

#endif
