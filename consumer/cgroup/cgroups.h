/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroups.h: from a cgroup's id (its inode number in cgroup2) to its path, without privilege: a
 * cache, then /proc/PID/cgroup of a process known to be in it, then a walk of the hierarchy. Main
 * thread only.
 */
#ifndef TROCAR_CONSUMER_CGROUP_CGROUPS_H
#define TROCAR_CONSUMER_CGROUP_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/cgroup/container.h"
#include "consumer/cgroup/lookup_pool.h"
#include "shared/tools/cgroupfs.h"
#include "shared/tools/idmap.h"

#define CGROUPS_MAX 65536 /* paths cached; beyond, the cache starts anew */

struct cgroups {
	const char *mount; /* of cgroup2, borrowed */
	int mount_fd;	   /* O_PATH directory */
	uint64_t root_id;
	struct idmap known;	     /* id -> struct cgroup *, owned */
	uint64_t walked_ns;	     /* when the hierarchy was last walked, to bound walks */
	struct lookup_pool *lookups; /* owned; NULL: every look is made here and now */
	struct lookup_call
		*late; /* walks of users' directories that came late, for the next walk */
	/* What cannot be seen; cgroups_unseen.h says it. */
	struct cgroupfs_left left;	/* of the last walk that came to its end */
	int walk_error;			/* -errno of the last walk, 0 when it came to its end */
	struct cgroupfs_unread unknown; /* watches of which the last scan could not read whether
					   anybody is in them */
};

/* 0 or -errno. */
int cgroups_open(const char *mount, struct cgroups *ret_cgroups);

/* Starts the threads that look into users' directories (before the system-call filter). 0 or
 * -errno. */
int cgroups_start(struct cgroups *c);
void cgroups_done(struct cgroups *c);

/*
 * The path of cgroup `id` below the mount ("/" for the root); pid_hint 0 when no process in it is
 * known. Borrowed until cgroups_forget of that id. NULL when it cannot be found (gone).
 */
const char *cgroups_path(struct cgroups *c, uint64_t id, uint32_t pid_hint);

/* As cgroups_path without a hint, and what the path names; nothing when it cannot be found. */
const char *cgroups_container(struct cgroups *c, uint64_t id, struct container *ret_container);

/* Remembers what an event told. */
void cgroups_learn(struct cgroups *c, uint64_t id, const char *path);

/* The cgroup is gone. */
void cgroups_forget(struct cgroups *c, uint64_t id);

/*
 * The id of the cgroup at `path` below the mount. 0 or -errno; -EBUSY: somebody holds up who looks
 * into his directory, so of the three below, too.
 */
int cgroups_id(struct cgroups *c, const char *path, uint64_t *ret_id);

/* Reads `file` ("cpu.stat", ...) of the cgroup at `path` into `text`, NUL behind it. Bytes or
 * -errno. */
int cgroups_read(struct cgroups *c, const char *path, const char *file, char *text, size_t space);

/* Opens `file` of the cgroup at `path` read-only. Descriptor or -errno. */
int cgroups_open_file(struct cgroups *c, const char *path, const char *file);

/* "uid 1000", or at most two components of a path (names of at most 255 bytes). */
#define CGROUP_OWNER_BYTES 520

/*
 * Whose the cgroup is: the user who has the first directory on its path that is not root's, to whom
 * a tree was handed over, whatever he makes of it below; else what stands at the first two levels
 * ("/system.slice/nginx.service"). Looked up again after CGROUP_OWNER_NS. False when the cgroup is
 * not known.
 */
#define CGROUP_OWNER_NS 10000000000ULL
bool cgroups_owner(struct cgroups *c, uint64_t id, uint32_t pid_hint,
		   char owner[CGROUP_OWNER_BYTES]);

/*
 * Whether somebody is in this very cgroup: 1 when a process is (in a threaded one: a thread), 0
 * when nobody is or it was removed. -errno when that is unknown, because it could not be read: it
 * may well be occupied then.
 */
int cgroups_occupied(struct cgroups *c, const char *path);

/*
 * Walks the hierarchy as cgroupfs_walk does, users' directories beside the main loop, and keeps
 * what was left out for cgroups_unseen.h. 0, what `found` returned, or -errno of the root.
 */
int cgroups_walk(struct cgroups *c, int (*found)(void *context, const char *path, uint64_t id),
		 void *context);

/* The walk by which a scan learns everything is over: what came late before it has been told. */
void cgroup_lookup_walked(struct cgroups *c);

/* The cgroup2 path of a process from /proc/PID/cgroup into `path`. 0 or -errno. */
int cgroups_of_pid(uint32_t pid, char *path, size_t space);

#endif
