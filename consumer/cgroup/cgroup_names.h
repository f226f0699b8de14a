/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroup_names.h: the paths of cgroups that the lines of one session name. Several signals ask for
 * the same cgroup, one of them with a process in it; each path that is found serves all of them,
 * even after the cgroup is gone. A cgroup that is not known yet is searched for (cgroups_look.h)
 * until the session's lines are made. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUP_NAMES_H
#define TROCAR_CONSUMER_CGROUP_CGROUP_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/tools/idmap.h"

struct cgroups;

#define CGROUP_NAMES_MAX       256  /* cgroups of one session; others are looked up each time */
#define CGROUP_NAMES_ABOVE_MAX 2048 /* cgroups with known parent directories */
#define CGROUP_NAMES_LEVELS    4    /* of the hierarchy, from the root's children on */

struct cgroup_names {
	struct idmap by_id; /* id -> path, owned; "": requested, and not found so far */
	struct idmap above; /* id -> CGROUP_NAMES_LEVELS ids, owned */
};

void cgroup_names_init(struct cgroup_names *n);
void cgroup_names_done(struct cgroup_names *n);

/*
 * Returns the path of the cgroup, borrowed until cgroup_names_done or cgroups_forget. Returns NULL
 * if it is unknown; it is then searched for. pid_hint is a process in it, or 0. `n` may be NULL:
 * nothing is kept.
 */
const char *cgroup_names_ask(struct cgroup_names *n, struct cgroups *c, uint64_t id,
			     uint32_t pid_hint);

/*
 * Records the directories above the cgroup: the ids of the first levels of its path, 0 for levels
 * it does not have. They are searched for, because the cgroup itself may be gone.
 */
void cgroup_names_note_above(struct cgroup_names *n, struct cgroups *c, uint64_t id,
			     const uint64_t above[CGROUP_NAMES_LEVELS]);

/*
 * Like cgroup_names_ask, without a hint. If the cgroup is unknown, returns the path of the nearest
 * known cgroup above it.
 */
const char *cgroup_names_near(struct cgroup_names *n, struct cgroups *c, uint64_t id);

/* Returns whether a requested cgroup is still being searched for. */
bool cgroup_names_await(const struct cgroup_names *n, const struct cgroups *c);

/*
 * Retries a cgroup with *path NULL: sets *path to a copy, to be freed with free(3), or else *why to
 * a literal: it is gone, or the search for it has not ended.
 */
void cgroup_names_fill(struct cgroup_names *n, struct cgroups *c, uint64_t id, char **path,
		       const char **why);

#endif
