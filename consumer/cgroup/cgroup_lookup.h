/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroup_lookup.h: looks up and lists cgroup directories that belong to users. A user with write
 * access to a directory can hold the directory's lock, and a thread that lists the directory or
 * looks up a new name in it then waits. Threads of lookup_pool.h make these calls for the main
 * loop. The main loop itself uses only directories in which only root makes cgroups.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUP_LOOKUP_H
#define TROCAR_CONSUMER_CGROUP_CGROUP_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "shared/files/cgroupfs.h"

struct cgroups;

/* Returns whether a user other than root may make cgroups in the directory. */
bool cgroup_lookup_is_foreign(const struct stat *st);

/*
 * Returns the key by which calls are limited: one for all directories of a user, and one for each
 * directory that a group or any user may write to.
 */
uint64_t cgroup_lookup_owner(const struct stat *st);

/*
 * Looks up `path`, relative to the mount ("." for the mount itself), up to the first foreign
 * directory, because its owner could make the caller wait. Returns 0 with *ret_stat of `path` and
 * *ret_owner 0, or with *ret_stat and *ret_owner of the first foreign directory on the way. *bytes
 * is the length of the start of `path` that is known not to be foreign, and on return that of the
 * directory of *ret_stat; the pointer may be NULL. Returns -errno of stat(2): *bytes is then that
 * of the last existing directory.
 */
int cgroup_lookup_stat(struct cgroups *c, const char *path, struct stat *ret_stat,
		       uint64_t *ret_owner, size_t *bytes);

/* Look into a directory of `owner`: return the id, a descriptor, or -errno; -EBUSY: too late. */
int cgroup_lookup_id(struct cgroups *c, uint64_t owner, const char *path, uint64_t *ret_id);
int cgroup_lookup_open(struct cgroups *c, uint64_t owner, const char *path);

/* The cgroups below a foreign directory, which a thread lists. */
struct cgroup_listing;

/*
 * Makes a thread list the cgroups below `path`, a directory of `owner` (cgroup_lookup_owner), or
 * takes the result of a late listing of it unless cgroup_lookup_walked was called since.
 * cgroup_lookup_unlist releases it, also before its end. Returns 0; -EBUSY; -ENOMEM.
 */
int cgroup_lookup_list(struct cgroups *c, const char *path, uint64_t owner,
		       struct cgroup_listing **ret_listing);
void cgroup_lookup_unlist(struct cgroup_listing *l);

/*
 * Continues until `until_ns` (clock_mono_ns): waits briefly for the thread, then calls `found` for
 * each cgroup that it has listed. Returns 1 if there is more, or the thread has not finished.
 * Returns 0 at the end; the number of omitted directories is added to *left, including the
 * directory itself if the thread did not finish within CGROUP_LOOKUP_LIST_NS. Else returns the
 * value of `found`.
 */
#define CGROUP_LOOKUP_LIST_NS 100000000ull
int cgroup_lookup_tell(struct cgroup_listing *l, uint64_t until_ns,
		       int (*found)(void *context, const char *path, uint64_t id), void *context,
		       struct cgroupfs_left *left);

/* Ends the threads and frees the late walks. */
void cgroup_lookup_done(struct cgroups *c);

#endif
