/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/cgroup_lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/cgroup/lookup_pool.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* A walk waits this long for a thread before it lets the loop do other work. */
#define LISTING_SLICE_NS NSEC_PER_MSEC

#define LISTED_BYTES (8u << 20) /* bytes listed by one walk: 65,536 paths of 120 bytes */

/*
 * One lookup in a user's directory. It copies all its inputs, because the loop may continue before
 * it returns.
 */
struct look {
	struct lookup_call work; /* must be the first member */
	int mount_fd;		 /* stays open as long as the consumer runs */
	int r, fd;
	uint64_t id;
	/* The result of a walk: for each cgroup its id, its path and a NUL. */
	char *listed;
	size_t bytes, space;
	uint64_t cpu_ns; /* CPU time of the walk that is not counted yet */
	struct cgroupfs_left left;
	unsigned int readers; /* listings that use this late walk */
	char path[PATH_MAX];
};

static void look_free(struct lookup_call *w)
{
	struct look *l = (struct look *)w;

	if (l->fd >= 0)
		close(l->fd);
	free(l->listed);
	free(l);
}

static struct look *look_new(struct cgroups *c, uint64_t owner, const char *path,
			     void (*run)(struct lookup_call *w))
{
	struct look *l = calloc(1, sizeof(*l));

	if (!l || (size_t)snprintf(l->path, sizeof(l->path), "%s", path) >= sizeof(l->path)) {
		free(l);
		return NULL;
	}
	l->work = (struct lookup_call){ .run = run, .free = look_free, .owner = owner };
	l->mount_fd = c->mount_fd;
	l->fd = -1;
	return l;
}

bool cgroup_lookup_is_foreign(const struct stat *st)
{
	return st->st_uid != 0 || st->st_mode & (S_IWGRP | S_IWOTH);
}

uint64_t cgroup_lookup_owner(const struct stat *st)
{
	return st->st_uid ? st->st_uid : (uint64_t)st->st_ino << 32;
}

int cgroup_lookup_stat(struct cgroups *c, const char *path, struct stat *ret_stat,
		       uint64_t *ret_owner, size_t *bytes)
{
	char above[PATH_MAX];
	size_t n = bytes ? *bytes : 0;

	*ret_owner = 0;
	do {
		n += path[n] == '/';
		n += strcspn(path + n, "/");
		if (n >= sizeof(above))
			return -ENAMETOOLONG;
		memcpy(above, path, n);
		above[n] = '\0';
		if (fstatat(c->mount_fd, above, ret_stat, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		if (bytes)
			*bytes = n;
		if (path[n] && cgroup_lookup_is_foreign(ret_stat)) {
			*ret_owner = cgroup_lookup_owner(ret_stat);
			return 0;
		}
	} while (path[n]);
	return 0;
}

static void run_id(struct lookup_call *w)
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

int cgroup_lookup_id(struct cgroups *c, uint64_t owner, const char *path, uint64_t *ret_id)
{
	struct look *l = look_new(c, owner, path, run_id);
	int r = l ? lookup_pool_run(c->lookups, &l->work) : -ENOMEM;

	if (r < 0)
		return r;
	r = l->r;
	if (r == 0)
		*ret_id = l->id;
	look_free(&l->work);
	return r;
}

static void run_open(struct lookup_call *w)
{
	struct look *l = (struct look *)w;

	l->fd = openat(l->mount_fd, l->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	l->r = l->fd < 0 ? -errno : 0;
}

int cgroup_lookup_open(struct cgroups *c, uint64_t owner, const char *path)
{
	struct look *l = look_new(c, owner, path, run_open);
	int r = l ? lookup_pool_run(c->lookups, &l->work) : -ENOMEM;

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

	if (path[1] == '\0') /* the walk's own top, which the caller knows */
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

static void run_walk(struct lookup_call *w)
{
	struct look *l = (struct look *)w;
	struct cgroupfs_left left = {};
	uint64_t begun_ns = clock_thread_ns();

	l->r = cgroupfs_walk(l->mount_fd, l->path, CGROUPS_MAX,
			     (struct cgroupfs_visitor){ .found = list_cgroup, .context = l },
			     &left);
	left.cut |= l->left.cut;
	l->left = left;
	l->cpu_ns = clock_thread_ns() - begun_ns;
}

/* Returns the late walk of that directory, which stays in its list; NULL if there is none. */
static struct look *find_late(struct cgroups *c, const char *path)
{
	struct lookup_call *w;

	while ((w = lookup_pool_late(c->lookups))) {
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

struct cgroup_listing {
	struct cgroups *cgroups;
	struct look *look;
	bool late, running; /* look is in the list of late walks; a thread runs it */
	uint64_t began_ns;
	size_t at; /* position in look->listed */
	char path[];
};

int cgroup_lookup_list(struct cgroups *c, const char *path, uint64_t owner,
		       struct cgroup_listing **ret_listing)
{
	const char *name = path + strspn(path, "/");
	struct cgroup_listing *l = calloc(1, sizeof(*l) + strlen(path) + 1);
	int r = -ENOMEM;

	if (!l)
		return r;
	memcpy(l->path, path, strlen(path) + 1);
	l->cgroups = c;
	l->look = find_late(c, name);
	if (l->look) {
		l->late = true;
		l->look->readers++;
		*ret_listing = l;
		return 0;
	}
	l->began_ns = clock_mono_ns();
	l->look = look_new(c, owner, name, run_walk);
	if (l->look)
		r = lookup_pool_start(c->lookups, &l->look->work);
	if (r < 0) {
		free(l);
		return r;
	}
	l->running = true;
	*ret_listing = l;
	return 0;
}

void cgroup_lookup_unlist(struct cgroup_listing *l)
{
	if (!l)
		return;
	if (l->late)
		l->look->readers--;
	else if (l->running)
		lookup_pool_abandon(l->cgroups->lookups, &l->look->work);
	else if (l->look)
		look_free(&l->look->work);
	free(l);
}

/* Returns 0 when the listing is complete; 1: not yet; -EBUSY: it will be late. */
static int await_listing(struct cgroup_listing *l, uint64_t until_ns)
{
	uint64_t now_ns = clock_mono_ns();

	if (!l->running)
		return 0;
	if (lookup_pool_wait(l->cgroups->lookups, &l->look->work,
			     MIN(until_ns, now_ns + LISTING_SLICE_NS)) == 0) {
		l->running = false;
		return 0;
	}
	if (now_ns - l->began_ns < CGROUP_LOOKUP_LIST_NS)
		return 1;
	lookup_pool_abandon(l->cgroups->lookups, &l->look->work);
	l->running = false;
	l->look = NULL;
	return -EBUSY;
}

/* Adds the number of omitted directories to *left. */
static void note_left(const struct cgroup_listing *l, struct cgroupfs_left *left)
{
	const struct look *k = l->look;

	left->cut |= k->left.cut;
	if (k->r < 0 && k->r != -ENOSPC && !cgroupfs_vanished(k->r))
		cgroupfs_unread_add(&left->unread, l->path, k->r);
	if (k->left.unread.count) {
		cgroupfs_unread_add(&left->unread, l->path, k->left.unread.error);
		left->unread.count += k->left.unread.count - 1;
	}
}

int cgroup_lookup_tell(struct cgroup_listing *l, uint64_t until_ns,
		       int (*found)(void *context, const char *path, uint64_t id), void *context,
		       struct cgroupfs_left *left)
{
	char whole[PATH_MAX];
	int r = await_listing(l, until_ns);

	if (r < 0) {
		cgroupfs_unread_add(&left->unread, l->path, r);
		return 0;
	}
	if (r == 0) {
		l->cgroups->listed_cpu_ns += l->look->cpu_ns;
		l->look->cpu_ns = 0;
	}
	while (r == 0 && l->at < l->look->bytes) {
		const char *below = l->look->listed + l->at + sizeof(uint64_t);
		uint64_t id;

		memcpy(&id, l->look->listed + l->at, sizeof(id));
		l->at += sizeof(id) + strlen(below) + 1;
		if ((size_t)snprintf(whole, sizeof(whole), "%s%s", l->path, below) >= sizeof(whole))
			continue;
		r = found(context, whole, id);
		if (r == 0 && clock_mono_ns() >= until_ns)
			return 1;
	}
	if (r == 0)
		note_left(l, left);
	return r;
}

void cgroup_lookup_walked(struct cgroups *c)
{
	struct lookup_call **at = &c->late;

	while (*at) {
		struct lookup_call *w = *at;

		if (((struct look *)w)->readers) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->free(w);
	}
}

void cgroup_lookup_done(struct cgroups *c)
{
	lookup_pool_stop(c->lookups);
	c->lookups = NULL;
	cgroup_lookup_walked(c);
}
