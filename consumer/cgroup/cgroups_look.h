/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups_look.h: searches for the paths of cgroups that no event has reported, by walks of the
 * hierarchy over several iterations of the main loop. One walk searches for all ids that were
 * unknown before it began. An id that it has not found is gone (an id is never reused), or is in a
 * directory that the consumer cannot read: it is not searched for again before cgroups_look_again.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUPS_LOOK_H
#define TROCAR_CONSUMER_CGROUP_CGROUPS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/tools/idmap.h"

struct cgroups;
struct cgroups_walk;

#define CGROUPS_LOOK_MAX 4096 /* ids searched for, and ids that were not found */
/* Time between two walks; or ten times the duration of one, if that is longer. */
#define CGROUPS_LOOK_EVERY_NS 200000000ull

struct cgroups_look {
	/* Learns the path of each cgroup that a walk visits; the context is a struct cgroups. */
	int (*learn)(void *context, const char *path, uint64_t id);
	struct cgroups_walk *walk; /* owned; NULL: no walk in progress */
	struct idmap ids;	   /* id -> its state */
	size_t sought;		   /* number of ids that a walk has yet to search for */
	uint64_t began_ns, due_ns; /* of the walk; earliest begin of the next */
};

void cgroups_look_init(struct cgroups_look *l,
		       int (*learn)(void *context, const char *path, uint64_t id));
void cgroups_look_done(struct cgroups_look *l);

/* Searches for the path of the cgroup, unless that was done before. */
void cgroups_look_for(struct cgroups *c, uint64_t id);

/*
 * Returns whether a walk has yet to search for the cgroup: callers that need its path wait for it.
 */
bool cgroups_look_awaits(const struct cgroups *c, uint64_t id);

/* Record that the path is known by now, or that the cgroup is gone. */
void cgroups_look_found(struct cgroups *c, uint64_t id);
void cgroups_look_gone(struct cgroups *c, uint64_t id);

/* Forgets which ids were not found. */
void cgroups_look_again(struct cgroups *c);

/*
 * Continues until `until_ns` (clock_mono_ns). Returns the time to call again: 0 for never; a past
 * time for the next iteration.
 */
uint64_t cgroups_look_step(struct cgroups *c, uint64_t until_ns);

#endif
