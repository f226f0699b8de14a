/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups_look.h: looks for the paths of cgroups that no event has reported, by walks of the
 * hierarchy, which go on over turns of the main loop. One walk looks for all ids that were unknown
 * before it began. An id that it has not found is gone (an id is never given again), or lies where
 * the consumer cannot look: it is not looked for again before cgroups_look_again. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUPS_LOOK_H
#define TROCAR_CONSUMER_CGROUP_CGROUPS_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/tools/idmap.h"

struct cgroups;
struct cgroups_walk;

#define CGROUPS_LOOK_MAX 4096 /* ids looked for, and ids that were not found */
/* Between two walks; ten times as long as one took, where that is more. */
#define CGROUPS_LOOK_EVERY_NS 200000000ull

struct cgroups_look {
	/* Learns the path of each cgroup that a walk meets; the context is a struct cgroups. */
	int (*learn)(void *context, const char *path, uint64_t id);
	struct cgroups_walk *walk; /* owned; NULL: none is under way */
	struct idmap ids;	   /* id -> its state */
	size_t sought;		   /* of ids: a walk has still to look for them */
	uint64_t began_ns, due_ns; /* of the walk; before that the next does not begin */
};

void cgroups_look_init(struct cgroups_look *l,
		       int (*learn)(void *context, const char *path, uint64_t id));
void cgroups_look_done(struct cgroups_look *l);

/* Looks for the path of the cgroup, unless that was done before. */
void cgroups_look_for(struct cgroups *c, uint64_t id);

/* Whether a walk has still to look for the cgroup: callers that need its path wait for that. */
bool cgroups_look_awaits(const struct cgroups *c, uint64_t id);

/* The path is known by now; the cgroup is known to be gone. */
void cgroups_look_found(struct cgroups *c, uint64_t id);
void cgroups_look_gone(struct cgroups *c, uint64_t id);

/* Forgets which ids were not found. */
void cgroups_look_again(struct cgroups *c);

/*
 * Goes on until `until_ns` (clock_mono_ns). Returns when to call again: 0 at no time; a time that
 * is past: in the next turn.
 */
uint64_t cgroups_look_step(struct cgroups *c, uint64_t until_ns);

#endif
