/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups_walk.h: walks the cgroup hierarchy in parts. Directories in which users make cgroups are
 * listed by the threads of lookup_pool.h. Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUPS_WALK_H
#define TROCAR_CONSUMER_CGROUP_CGROUPS_WALK_H

#include <stdint.h>

struct cgroups;
struct cgroups_walk;

/*
 * Begins a walk, which calls `found` for each cgroup as cgroupfs_walk does. cgroups_walk_free
 * releases it, also before its end. Returns 0, the value of `found` for the root, or -errno of the
 * root.
 */
int cgroups_walk_new(struct cgroups *c, int (*found)(void *context, const char *path, uint64_t id),
		     void *context, struct cgroups_walk **ret_walk);
void cgroups_walk_free(struct cgroups_walk *w);

/*
 * Continues until `until_ns` (clock_mono_ns). Returns 1 if there is more, or a thread has not
 * finished. Returns 0 at the end of the walk; the omitted directories are kept for
 * cgroups_unseen.h. Otherwise returns the value of `found`, or -errno of the root.
 */
int cgroups_walk_step(struct cgroups_walk *w, uint64_t until_ns);

#endif
