/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups_aside.h: looks into directories of cgroups that belong to users. Whoever may make and
 * remove cgroups in a directory can hold its lock, and so whoever lists it or looks up a name in it
 * for the first time; those looks are made beside the main loop (aside.h). Directories in which
 * only root makes cgroups are looked into at once.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUPS_ASIDE_H
#define TROCAR_CONSUMER_CGROUP_CGROUPS_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "shared/tools/cgroupfs.h"

struct cgroups;

/* Whether others than root may make cgroups in a directory. */
bool cgroups_is_foreign(const struct stat *st);

/*
 * Looks `path` up, below the mount and relative to it ("." for the mount itself), as far as nobody
 * can hold that up. 0 and *ret_stat of `path`, with *ret_owner 0; or of the first directory on the
 * way that is foreign, with its owner. -errno of stat(2).
 */
int cgroups_stat(struct cgroups *c, const char *path, struct stat *ret_stat, uint64_t *ret_owner);

/* These look into directories of `owner`. The id, a descriptor, or -errno; -EBUSY: not in time. */
int cgroups_id_aside(struct cgroups *c, uint64_t owner, const char *path, uint64_t *ret_id);
int cgroups_open_aside(struct cgroups *c, uint64_t owner, const char *path);

/*
 * Calls `found` for what is below `path`, a directory that is foreign; what was left out is added
 * to *left. What came late, and no cgroups_walked since, counts. 0, or what `found` returned.
 */
int cgroups_walk_aside(struct cgroups *c, const char *path, const struct stat *st,
		       int (*found)(void *context, const char *path, uint64_t id), void *context,
		       struct cgroupfs_left *left);

/* Ends the threads, and frees what came late. */
void cgroups_aside_done(struct cgroups *c);

#endif
