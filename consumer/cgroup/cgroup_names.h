/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroup_names.h: the paths of cgroups that the lines of one session name. Several signals ask for
 * the same cgroup, one of them with a process in it: whatever one has found all have, also once the
 * cgroup is gone. A cgroup that is not known yet is looked for (cgroups_look.h) until the session's
 * lines are made. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUP_NAMES_H
#define TROCAR_CONSUMER_CGROUP_CGROUP_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/tools/idmap.h"

struct cgroups;

#define CGROUP_NAMES_MAX       256 /* cgroups of one session; further ones are looked up each time */
#define CGROUP_NAMES_ABOVE_MAX 2048 /* cgroups with known directories above them */
#define CGROUP_NAMES_LEVELS    4    /* of the hierarchy, from the root's children on */

struct cgroup_names {
	struct idmap by_id; /* id -> path, owned; "": it was asked for, and not found so far */
	struct idmap above; /* id -> CGROUP_NAMES_LEVELS ids, owned */
};

void cgroup_names_init(struct cgroup_names *n);
void cgroup_names_done(struct cgroup_names *n);

/*
 * Returns the path of the cgroup, borrowed until cgroup_names_done or cgroups_forget, or NULL: then
 * it is looked for. pid_hint is a process in it, or 0. `n` may be NULL: nothing is kept.
 */
const char *cgroup_names_ask(struct cgroup_names *n, struct cgroups *c, uint64_t id,
			     uint32_t pid_hint);

/*
 * Notes the directories above the cgroup: the ids of the first levels of its path, 0 where it has
 * none. They are looked for, because the cgroup itself may be gone.
 */
void cgroup_names_note_above(struct cgroup_names *n, struct cgroups *c, uint64_t id,
			     const uint64_t above[CGROUP_NAMES_LEVELS]);

/*
 * As cgroup_names_ask, without a hint; where the cgroup is not known, the path of the nearest one
 * that is known to be above it.
 */
const char *cgroup_names_near(struct cgroup_names *n, struct cgroups *c, uint64_t id);

/* Whether a cgroup that was asked for has still to be looked for. */
bool cgroup_names_await(const struct cgroup_names *n, const struct cgroups *c);

/*
 * Asks again for a cgroup with *path NULL: sets a copy, to be freed with free(3), or else *why, a
 * literal: it is gone, or the look for it has not ended.
 */
void cgroup_names_fill(struct cgroup_names *n, struct cgroups *c, uint64_t id, char **path,
		       const char **why);

#endif
