/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups.h: finds the path of a cgroup by its id (its inode number in cgroup2), without privilege:
 * in a cache, then in /proc/PID/cgroup of a process known to be in it, then by a walk of the
 * hierarchy, which takes several iterations of the main loop (cgroups_look.h). Main thread only.
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
	uint64_t emptied;	     /* number of times that `known` was full and was emptied */
	struct cgroups_look look;    /* searches for unknown ids */
	struct lookup_pool *lookups; /* owned; NULL: the main thread makes the lookups itself */
	struct lookup_call *late;    /* late walks of users' directories */
	uint64_t listed_cpu_ns;	     /* CPU time of the threads that listed such directories */
	/* The parts that the consumer cannot see; cgroups_unseen.h reports them. */
	struct cgroupfs_left left; /* of the last completed walk */
	int walk_error;		   /* -errno of the last walk, 0 if it was completed */
	struct cgroupfs_unread
		unknown; /* watches with an occupancy that the last scan could not read */
};

/* Opens the hierarchy mounted at `mount` (borrowed). 0 or -errno. */
int cgroups_open(const char *mount, struct cgroups *ret_cgroups);

/*
 * Starts the threads that look into users' directories (before the system-call filter). Returns 0
 * or -errno. End them with cgroups_done.
 */
int cgroups_start(struct cgroups *c);
void cgroups_done(struct cgroups *c);

/*
 * Returns the path of cgroup `id` below the mount ("/" for the root), borrowed until cgroups_forget
 * of that id. Returns NULL if there is no such cgroup, or if it is still being searched for
 * (cgroups_look_awaits). pid_hint is a process in it, or 0.
 */
const char *cgroups_path(struct cgroups *c, uint64_t id, uint32_t pid_hint);

/*
 * Like cgroups_path without a hint; sets *ret_container to the container in the path. If it returns
 * NULL, *ret_container is not set.
 */
const char *cgroups_container(struct cgroups *c, uint64_t id, struct container *ret_container);

/* Caches the path that an event reported. */
void cgroups_learn(struct cgroups *c, uint64_t id, const char *path);

/* Returns whether the path of the cgroup is in the cache. */
bool cgroups_knows(const struct cgroups *c, uint64_t id);

/* Drops the cgroup from the cache, because it was removed. */
void cgroups_forget(struct cgroups *c, uint64_t id);

/*
 * Finds the id of the cgroup at `path` below the mount. Returns 0 or -errno; -EBUSY if the owner of
 * a directory on the way makes the lookup wait too long, also in the two functions below and in
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
 * Names the owner of the cgroup. This is the user of the first directory on its path that is not
 * root's ("uid 1000"): an administrator delegated the tree to that user, so all cgroups below are
 * the user's. Without such a directory, the first two levels name the owner
 * ("/system.slice/nginx.service"). The consumer looks it up again after CGROUP_OWNER_NS. Returns
 * false if the cgroup is unknown.
 */
#define CGROUP_OWNER_NS 10000000000ULL
bool cgroups_owner(struct cgroups *c, uint64_t id, uint32_t pid_hint,
		   char owner[CGROUP_OWNER_BYTES]);

/*
 * Returns whether a directory on the way to `path` belongs to a user: *ret_stat is of the first
 * one, and its path is the first *bytes bytes of `path`. If false, *bytes bytes of the path are
 * root's directories. On entry, *bytes is the length known to be root's; 0: none.
 */
bool cgroups_delegated(struct cgroups *c, const char *path, struct stat *ret_stat, size_t *bytes);

/*
 * Returns 1 if processes are in this cgroup itself (in a threaded cgroup: threads), and 0 if there
 * are none or it was removed. Returns -errno if the file could not be read: the cgroup may be
 * occupied.
 */
int cgroups_occupied(struct cgroups *c, const char *path);

/*
 * Does the same for this cgroup and all below it, from its cgroup.events: the kernel reports a
 * cgroup as empty if all of these are.
 */
int cgroups_populated(struct cgroups *c, const char *path);

/*
 * Call after the walk of a process scan, when all results of the late walks were used: frees the
 * late walks.
 */
void cgroup_lookup_walked(struct cgroups *c);

/* Reads the cgroup2 path of a process from /proc/PID/cgroup into `path`. 0 or -errno. */
int cgroups_of_pid(uint32_t pid, char *path, size_t space);

#endif
