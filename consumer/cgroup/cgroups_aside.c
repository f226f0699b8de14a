/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/cgroups_aside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/cgroup/aside.h"
#include "consumer/cgroup/cgroups.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define LISTED_BYTES (8u << 20) /* of one walk: 65,536 paths of 120 bytes */

/* One look. It keeps its own copy of all that it needs: the loop may have gone on. */
struct look {
	struct aside_work work; /* first */
	int mount_fd;		/* stays open as long as the consumer runs */
	int r, fd;
	uint64_t id;
	/* A walk's: for each cgroup its id, its path and a NUL. */
	char *listed;
	size_t bytes, space;
	struct cgroupfs_left left;
	char path[PATH_MAX];
};

static void look_free(struct aside_work *w)
{
	struct look *l = (struct look *)w;

	if (l->fd >= 0)
		close(l->fd);
	free(l->listed);
	free(l);
}

static struct look *look_new(struct cgroups *c, uint64_t owner, const char *path,
			     void (*run)(struct aside_work *w))
{
	struct look *l = calloc(1, sizeof(*l));

	if (!l || (size_t)snprintf(l->path, sizeof(l->path), "%s", path) >= sizeof(l->path)) {
		free(l);
		return NULL;
	}
	l->work = (struct aside_work){ .run = run, .free = look_free, .owner = owner };
	l->mount_fd = c->mount_fd;
	l->fd = -1;
	return l;
}

bool cgroups_is_foreign(const struct stat *st)
{
	return st->st_uid != 0 || st->st_mode & (S_IWGRP | S_IWOTH);
}

/* One owner for all that a user has; what a group may write to stands for itself. */
static uint64_t owner_of(const struct stat *st)
{
	return st->st_uid ? st->st_uid : (uint64_t)st->st_ino << 32;
}

int cgroups_stat(struct cgroups *c, const char *path, struct stat *ret_stat, uint64_t *ret_owner)
{
	char above[PATH_MAX];
	size_t bytes = 0;

	*ret_owner = 0;
	do {
		bytes += path[bytes] == '/';
		bytes += strcspn(path + bytes, "/");
		if (bytes >= sizeof(above))
			return -ENAMETOOLONG;
		memcpy(above, path, bytes);
		above[bytes] = '\0';
		if (fstatat(c->mount_fd, above, ret_stat, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (path[bytes] && cgroups_is_foreign(ret_stat)) {
			*ret_owner = owner_of(ret_stat);
			return 0;
		}
	} while (path[bytes]);
	return 0;
}

static void run_id(struct aside_work *w)
{
	struct look *l = (struct look *)w;
	struct stat st;

	if (fstatat(l->mount_fd, l->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		l->r = -errno;
	else if (!S_ISDIR(st.st_mode))
		l->r = -ENOTDIR;
	else
		l->id = st.st_ino;
}

int cgroups_id_aside(struct cgroups *c, uint64_t owner, const char *path, uint64_t *ret_id)
{
	struct look *l = look_new(c, owner, path, run_id);
	int r = l ? aside_run(c->aside, &l->work) : -ENOMEM;

	if (r < 0)
		return r;
	r = l->r;
	if (r == 0)
		*ret_id = l->id;
	look_free(&l->work);
	return r;
}

static void run_open(struct aside_work *w)
{
	struct look *l = (struct look *)w;

	l->fd = openat(l->mount_fd, l->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	l->r = l->fd < 0 ? -errno : 0;
}

int cgroups_open_aside(struct cgroups *c, uint64_t owner, const char *path)
{
	struct look *l = look_new(c, owner, path, run_open);
	int r = l ? aside_run(c->aside, &l->work) : -ENOMEM;

	if (r < 0)
		return r;
	r = l->r < 0 ? l->r : l->fd;
	l->fd = -1;
	look_free(&l->work);
	return r;
}

/* ---- a walk */

static int list_cgroup(void *context, const char *path, uint64_t id)
{
	struct look *l = context;
	size_t bytes = strlen(path) + 1;

	if (path[1] == '\0') /* itself, which is known */
		return 0;
	if (l->bytes + sizeof(id) + bytes > l->space) {
		size_t space = MAX(2 * l->space, (size_t)4096 + bytes);
		char *more = space <= LISTED_BYTES ? realloc(l->listed, space) : NULL;

		if (!more) {
			l->left.cut = true;
			return -ENOSPC;
		}
		l->listed = more;
		l->space = space;
	}
	memcpy(l->listed + l->bytes, &id, sizeof(id));
	memcpy(l->listed + l->bytes + sizeof(id), path, bytes);
	l->bytes += sizeof(id) + bytes;
	return 0;
}

static void run_walk(struct aside_work *w)
{
	struct look *l = (struct look *)w;
	struct cgroupfs_left left = {};

	l->r = cgroupfs_walk(l->mount_fd, l->path, CGROUPS_MAX,
			     (struct cgroupfs_visitor){ .found = list_cgroup, .context = l },
			     &left);
	left.cut |= l->left.cut;
	l->left = left;
}

/* The walk of that directory that came late; NULL when there is none. It stays in its list. */
static const struct look *find_late(struct cgroups *c, const char *path)
{
	struct aside_work *w;

	while ((w = aside_late(c->aside))) {
		if (w->run == run_walk) {
			w->next = c->late;
			c->late = w;
		} else {
			w->free(w);
		}
	}
	for (w = c->late; w; w = w->next)
		if (!strcmp(((struct look *)w)->path, path))
			return (struct look *)w;
	return NULL;
}

/* Tells of what a walk of `path` has found, and has left out. */
static int tell_look(const struct look *l, const char *path,
		     int (*found)(void *context, const char *path, uint64_t id), void *context,
		     struct cgroupfs_left *left)
{
	char whole[PATH_MAX];

	left->cut |= l->left.cut;
	if (l->r < 0 && l->r != -ENOSPC && !cgroupfs_vanished(l->r))
		cgroupfs_unread_add(&left->unread, path, l->r);
	if (l->left.unread.count) {
		cgroupfs_unread_add(&left->unread, path, l->left.unread.error);
		left->unread.count += l->left.unread.count - 1;
	}
	for (size_t at = 0; at < l->bytes;) {
		const char *below = l->listed + at + sizeof(uint64_t);
		uint64_t id;
		int r;

		memcpy(&id, l->listed + at, sizeof(id));
		at += sizeof(id) + strlen(below) + 1;
		if ((size_t)snprintf(whole, sizeof(whole), "%s%s", path, below) >= sizeof(whole))
			continue;
		r = found(context, whole, id);
		if (r != 0)
			return r;
	}
	return 0;
}

int cgroups_walk_aside(struct cgroups *c, const char *path, const struct stat *st,
		       int (*found)(void *context, const char *path, uint64_t id), void *context,
		       struct cgroupfs_left *left)
{
	const char *name = path + strspn(path, "/");
	const struct look *late = find_late(c, name);
	struct look *l;
	int r;

	if (late)
		return tell_look(late, path, found, context, left);
	l = look_new(c, owner_of(st), name, run_walk);
	r = l ? aside_run(c->aside, &l->work) : -ENOMEM;
	if (r < 0) {
		cgroupfs_unread_add(&left->unread, path, r);
		return 0;
	}
	r = tell_look(l, path, found, context, left);
	look_free(&l->work);
	return r;
}

void cgroups_walked(struct cgroups *c)
{
	while (c->late) {
		struct aside_work *w = c->late;

		c->late = w->next;
		w->free(w);
	}
}

void cgroups_aside_done(struct cgroups *c)
{
	aside_stop(c->aside);
	c->aside = NULL;
	cgroups_walked(c);
}
