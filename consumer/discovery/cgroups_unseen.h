/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups_unseen.h: what of the cgroup hierarchy the consumer could not see, said: an error line
 * for each kind when it begins or grows, and the part `cgroups` of the status. Main thread only.
 */
#ifndef TROCAR_CONSUMER_DISCOVERY_CGROUPS_UNSEEN_H
#define TROCAR_CONSUMER_DISCOVERY_CGROUPS_UNSEEN_H

#include <stdint.h>

#include "shared/json/jsonw.h"

struct cgroups;
struct lines;

/* Between two lines of one kind: users open and close their cgroups as often as they like. */
#define CGROUPS_UNSEEN_EVERY_S 300

enum unseen_kind {
	UNSEEN_DIRECTORIES, /* a walk could not look into them */
	UNSEEN_REST,	    /* a walk met a limit of its own */
	UNSEEN_OCCUPANCY,   /* of watched cgroups: whether anybody is in them */
	UNSEEN_ROOT,	    /* the hierarchy itself could not be read */
	UNSEEN_COUNT_,
};

/* What has been said of each kind. */
struct cgroups_unseen {
	const struct cgroups *cgroups; /* borrowed, as the next */
	const struct lines *lines;
	struct {
		uint64_t count;
		uint64_t time_ns; /* of the last line; 0: none yet */
	} said[UNSEEN_COUNT_];
};

/* Says what the last walk and the last scan could not see; after each scan. */
void cgroups_unseen_check(struct cgroups_unseen *u, uint64_t now_ns);

/* Writes the object `cgroups` of the status. */
void cgroups_unseen_write(const struct cgroups_unseen *u, struct jsonw *w);

#endif
