/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups.h: finds the path of a cgroup by its id (its inode number in cgroup2), without privilege:
 * in a cache, then in /proc/PID/cgroup of a process known to be in it, then by a walk of the
 * hierarchy, which goes on over turns of the main loop (cgroups_look.h). Main thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUPS_H
#define TROCAR_CONSUMER_CGROUP_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/cgroups_look.h"
#include "consumer/cgroup/container.h"
#include "consumer/cgroup/lookup_pool.h"
#include "shared/files/cgroupfs.h"
#include "shared/tools/idmap.h"

#define CGROUPS_MAX 65536 /* paths cached; when full, the cache is emptied */

struct cgroups {
	const char *mount; /* where cgroup2 is mounted, borrowed */
	int mount_fd;	   /* O_PATH directory */
	uint64_t root_id;
	struct idmap known;	     /* id -> struct cgroup *, owned */
	uint64_t emptied;	     /* how often `known` was full and was emptied */
	struct cgroups_look look;    /* for ids that are not known */
	struct lookup_pool *lookups; /* owned; NULL: the main thread looks itself */
	struct lookup_call *late;    /* walks of users' directories that came late */
	uint64_t listed_cpu_ns;	     /* CPU time of the threads that listed such directories */
	/* What the consumer cannot see; cgroups_unseen.h reports it. */
	struct cgroupfs_left left; /* of the last walk that was completed */
	int walk_error;		   /* -errno of the last walk, 0 when it was completed */
	struct cgroupfs_unread
		unknown; /* watches with an occupancy that the last scan could not read */
};

/* Opens the hierarchy mounted at `mount` (borrowed). 0 or -errno. */
int cgroups_open(const char *mount, struct cgroups *ret_cgroups);

/* Starts the threads that look into users' directories (before the system-call filter). 0 or
 * -errno. */
int cgroups_start(struct cgroups *c);
void cgroups_done(struct cgroups *c);

/*
 * Returns the path of cgroup `id` below the mount ("/" for the root), borrowed until cgroups_forget
 * of that id; NULL when there is no such cgroup, or when the look for it has still to find it
 * (cgroups_look_awaits). pid_hint is a process in it, or 0.
 */
const char *cgroups_path(struct cgroups *c, uint64_t id, uint32_t pid_hint);

/*
 * As cgroups_path without a hint; *ret_container is the container that the path names. On NULL it
 * is not set.
 */
const char *cgroups_container(struct cgroups *c, uint64_t id, struct container *ret_container);

/* Caches the path that an event reported. */
void cgroups_learn(struct cgroups *c, uint64_t id, const char *path);

/* Whether the path of the cgroup is in the cache. */
bool cgroups_knows(const struct cgroups *c, uint64_t id);

/* Drops the cgroup from the cache: it was removed. */
void cgroups_forget(struct cgroups *c, uint64_t id);

/*
 * Finds the id of the cgroup at `path` below the mount. 0 or -errno; -EBUSY when the owner of a
 * directory on the way makes the lookup wait too long, also for the two functions below and
 * cgroups_occupied.
 */
int cgroups_id(struct cgroups *c, const char *path, uint64_t *ret_id);

/*
 * Reads `file` ("cpu.stat", ...) of the cgroup at `path` into `text` and appends a NUL. Returns the
 * bytes or -errno.
 */
int cgroups_read(struct cgroups *c, const char *path, const char *file, char *text, size_t space);

/* Opens `file` of the cgroup at `path` read-only. Returns a descriptor or -errno. */
int cgroups_open_file(struct cgroups *c, const char *path, const char *file);

/* "uid 1000", or at most two components of a path (names of at most 255 bytes). */
#define CGROUP_OWNER_BYTES 520

/*
 * Names the owner of the cgroup. That is the user of the first directory on its path that is not
 * root's ("uid 1000"): an administrator delegated the tree to him, so that all cgroups below are
 * his. When there is none, the owner is named by the first two levels
 * ("/system.slice/nginx.service"). The consumer looks it up again after CGROUP_OWNER_NS. False when
 * the cgroup is not known.
 */
#define CGROUP_OWNER_NS 10000000000ULL
bool cgroups_owner(struct cgroups *c, uint64_t id, uint32_t pid_hint,
		   char owner[CGROUP_OWNER_BYTES]);

/*
 * Whether a directory on the way to `path` belongs to a user: *ret_stat is of the first one, and
 * its path is the first *bytes bytes of `path`. False: so many bytes are of directories that are
 * root's. Before, *bytes is how many are known to be; 0: none.
 */
bool cgroups_delegated(struct cgroups *c, const char *path, struct stat *ret_stat, size_t *bytes);

/*
 * Whether there are processes in this very cgroup (in a threaded cgroup: threads): 1, or 0 when
 * there are none or it was removed. -errno when the file could not be read: the cgroup may be
 * occupied.
 */
int cgroups_occupied(struct cgroups *c, const char *path);

/*
 * The same for this cgroup and all below it, from its cgroup.events: the kernel reports that a
 * cgroup is empty when all of these are.
 */
int cgroups_populated(struct cgroups *c, const char *path);

/*
 * Call after the walk of a process scan: frees the late walks, after all their results were used.
 */
void cgroup_lookup_walked(struct cgroups *c);

/* Reads the cgroup2 path of a process from /proc/PID/cgroup into `path`. 0 or -errno. */
int cgroups_of_pid(uint32_t pid, char *path, size_t space);

#endif
