/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroup_lookup.h: looks into directories of cgroups that belong to users. A user who may make and
 * remove cgroups in a directory can hold its lock, and thereby stop whoever lists the directory or
 * looks up a new name in it. Threads of lookup_pool.h make these calls for the main loop. The main
 * loop itself looks into directories in which only root makes cgroups.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUP_LOOKUP_H
#define TROCAR_CONSUMER_CGROUP_CGROUP_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "shared/tools/cgroupfs.h"

struct cgroups;

/* Whether others than root may make cgroups in a directory. */
bool cgroup_lookup_is_foreign(const struct stat *st);

/*
 * Looks `path` up, below the mount and relative to it ("." for the mount itself), as far as nobody
 * can hold that up. 0 and *ret_stat of `path`, with *ret_owner 0; or of the first directory on the
 * way that is foreign, with its owner. -errno of stat(2).
 */
int cgroup_lookup_stat(struct cgroups *c, const char *path, struct stat *ret_stat,
		       uint64_t *ret_owner);

/* These look into directories of `owner`. The id, a descriptor, or -errno; -EBUSY: not in time. */
int cgroup_lookup_id(struct cgroups *c, uint64_t owner, const char *path, uint64_t *ret_id);
int cgroup_lookup_open(struct cgroups *c, uint64_t owner, const char *path);

/*
 * Calls `found` for what is below `path`, a directory that is foreign; what was left out is added
 * to *left. What came late, and no cgroup_lookup_walked since, counts. 0, or what `found` returned.
 */
int cgroup_lookup_walk(struct cgroups *c, const char *path, const struct stat *st,
		       int (*found)(void *context, const char *path, uint64_t id), void *context,
		       struct cgroupfs_left *left);

/* Ends the threads, and frees what came late. */
void cgroup_lookup_done(struct cgroups *c);

#endif
