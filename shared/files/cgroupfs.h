/* SPDX-License-Identifier: BSD-2-Clause */
/* cgroupfs.h: finds the mount of cgroup2, and walks the cgroups below it. */
#ifndef TROCAR_SHARED_FILES_CGROUPFS_H
#define TROCAR_SHARED_FILES_CGROUPFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum cgroup_mode {
	CGROUP_UNIFIED, /* cgroup2 alone */
	CGROUP_HYBRID,	/* cgroup2 next to v1 controllers */
	CGROUP_V1_ONLY,
	CGROUP_NONE,
};

/* Returns the mode's name: "unified", "hybrid", "v1-only", "none". */
const char *cgroupfs_mode_name(enum cgroup_mode mode);

/*
 * Finds the first cgroup2 mount in `mounts` (the text of /proc/self/mountinfo, proc(5)). Writes its
 * mount point, octal escapes decoded, to ret_mount (at most `space` bytes, NUL included). Prefers
 * the mount with the highest root in the hierarchy: in a separate cgroup namespace a root "/" is
 * only a part of the hierarchy, and "/.." is more of it. 0; -ENOENT without cgroup2 (ret_mode is
 * still set); -ENAMETOOLONG.
 */
int cgroupfs_find(const char *mounts, char *ret_mount, size_t space, enum cgroup_mode *ret_mode);

/* Calls cgroupfs_find with /proc/self/mountinfo. */
int cgroupfs_find_here(char *ret_mount, size_t space, enum cgroup_mode *ret_mode);

/*
 * Finds where `controller` ("cpu", "memory", ...) is mounted as a v1 hierarchy, as cgroupfs_find
 * does. 0; -ENOENT: no v1 hierarchy has it; -ENAMETOOLONG.
 */
int cgroupfs_find_v1(const char *mounts, const char *controller, char *ret_mount, size_t space);

/* Calls cgroupfs_find_v1 with /proc/self/mountinfo. */
int cgroupfs_find_v1_here(const char *controller, char *ret_mount, size_t space);

#define CGROUPFS_EXAMPLE_BYTES 160

/* Cgroups that could not be read: how many, and one of them. */
struct cgroupfs_unread {
	uint64_t count;
	int error;			      /* -errno of the first */
	char example[CGROUPFS_EXAMPLE_BYTES]; /* path of the first, cut to the size */
};

/* Counts the cgroup at `path`, which could not be read for `error` (-errno). */
void cgroupfs_unread_add(struct cgroupfs_unread *u, const char *path, int error);

/*
 * Whether `error` is the kernel's error for a cgroup that was removed, before, during or after the
 * read.
 */
bool cgroupfs_vanished(int error);

/* What a walk left out. */
struct cgroupfs_left {
	struct cgroupfs_unread unread; /* passed to `found`, but not the cgroups below them */
	bool cut; /* there are more than `max`, or deeper ones, or paths above PATH_MAX */
};

/* The callbacks of a walk. A return value other than 0 ends the walk, which returns it. */
struct cgroupfs_visitor {
	/*
	 * Called for each directory with its path below the top ("/" for the top) and its id, the
	 * inode.
	 */
	int (*found)(void *context, const char *path, uint64_t id);
	/* Sets whether the walk enters a directory; NULL: it enters all. Not called for the top. */
	int (*enters)(void *context, const char *path, const struct stat *st, bool *ret_enters);
	void *context;
};

/* A walk in progress. */
struct cgroupfs_walk;

/*
 * Begins a walk as cgroupfs_walk does, and visits its top. cgroupfs_walk_free releases it, also
 * before its end. 0 or -errno of open(2); the value of `found` for the top if that is not 0.
 */
int cgroupfs_walk_new(int dir_fd, const char *top, size_t max, struct cgroupfs_visitor visitor,
		      struct cgroupfs_walk **ret_walk);
void cgroupfs_walk_free(struct cgroupfs_walk *w);

/* Whether the walk has not reached its end. */
bool cgroupfs_walk_more(const struct cgroupfs_walk *w);

/* Reads one more entry. 0; the value of a callback; -errno of readdir(3) for the top. */
int cgroupfs_walk_step(struct cgroupfs_walk *w);

/* Returns the cgroups that the walk has left out until now. */
struct cgroupfs_left cgroupfs_walk_left(const struct cgroupfs_walk *w);

/*
 * Walks all cgroups below `top`, a path relative to `dir_fd` (openat(2)), at most 64 deep and at
 * most `max` directories. Skips directories that were removed. The owner of a delegated cgroup may
 * forbid reading it: the walk adds an unreadable directory below the top to *ret_left and
 * continues. 0 with *ret_left; -errno of open(2) and readdir(3) for the top.
 */
int cgroupfs_walk(int dir_fd, const char *top, size_t max, struct cgroupfs_visitor visitor,
		  struct cgroupfs_left *ret_left);

#endif
