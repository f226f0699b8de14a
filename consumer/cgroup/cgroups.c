/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/cgroup/cgroup_lookup.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

/* The cache entry of one cgroup. */
struct cgroup {
	struct container container; /* parsed from the path once, not for each line */
	uint64_t owner_ns;	    /* when owner_uid was looked up; 0: never */
	uint32_t owner_uid;	    /* 0: root */
	char path[];
};

/*
 * Levels at which a directory's owner is looked up: an administrator delegates a tree far above
 * this depth.
 */
#define OWNER_LEVELS 16

static int learn_walked(void *context, const char *path, uint64_t id)
{
	cgroups_learn(context, id, path);
	return 0;
}

int cgroups_open(const char *mount, struct cgroups *ret_cgroups)
{
	_cleanup_close_ int fd = open(mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*ret_cgroups = (struct cgroups){
		.mount = mount,
		.mount_fd = TAKE_FD(fd),
		.root_id = st.st_ino,
	};
	idmap_init(&ret_cgroups->known, CGROUPS_MAX);
	cgroups_look_init(&ret_cgroups->look, learn_walked);
	return 0;
}

int cgroups_start(struct cgroups *c)
{
	return lookup_pool_new(&c->lookups);
}

void cgroups_done(struct cgroups *c)
{
	cgroups_look_done(&c->look);
	cgroup_lookup_done(c);
	idmap_free(&c->known, free);
	if (c->mount_fd >= 0)
		close(c->mount_fd);
	c->mount_fd = -1;
}

static struct cgroup *new_cgroup(const char *path)
{
	size_t bytes = strlen(path) + 1;
	struct cgroup *fresh = malloc(sizeof(*fresh) + bytes);

	if (!fresh)
		return NULL;
	fresh->container = container_parse(path);
	fresh->owner_ns = 0;
	fresh->owner_uid = 0;
	memcpy(fresh->path, path, bytes);
	return fresh;
}

void cgroups_learn(struct cgroups *c, uint64_t id, const char *path)
{
	const struct cgroup *known = idmap_get(&c->known, id);
	_cleanup_free_ struct cgroup *fresh = NULL, *old = NULL;

	cgroups_look_found(c, id);
	if (known && !strcmp(known->path, path))
		return;
	fresh = new_cgroup(path);
	if (!fresh)
		return;
	old = idmap_remove(&c->known, id);
	if (idmap_put(&c->known, id, fresh) == -ENOSPC) {
		idmap_free(&c->known, free);
		c->emptied++;
		if (idmap_put(&c->known, id, fresh) < 0)
			return;
	}
	TAKE_PTR(fresh);
}

bool cgroups_knows(const struct cgroups *c, uint64_t id)
{
	return idmap_get(&c->known, id) != NULL;
}

void cgroups_forget(struct cgroups *c, uint64_t id)
{
	free(idmap_remove(&c->known, id));
	cgroups_look_gone(c, id);
}

/*
 * Converts a path below the mount to one for the *at() calls: "/" and "/a/b" become "." and "a/b".
 */
static const char *relative_path(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

/*
 * Whether "." or ".." is a component. No cgroup has such a name, and ".." leads out of the
 * hierarchy.
 */
static bool has_dots(const char *path)
{
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if ((n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
			return true;
		path += n;
	}
	return false;
}

int cgroups_id(struct cgroups *c, const char *path, uint64_t *ret_id)
{
	struct stat st;
	uint64_t owner;
	int r;

	if (has_dots(path))
		return -EINVAL;
	r = cgroup_lookup_stat(c, relative_path(path), &st, &owner, NULL);
	if (r < 0)
		return r;
	if (owner)
		return cgroup_lookup_id(c, owner, relative_path(path), ret_id);
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	*ret_id = st.st_ino;
	return 0;
}

int cgroups_open_file(struct cgroups *c, const char *path, const char *file)
{
	char name[4096];
	struct stat st;
	uint64_t owner;
	int fd, n, r;

	n = snprintf(name, sizeof(name), "%s/%s", relative_path(path), file);
	if (n < 0 || (size_t)n >= sizeof(name))
		return -ENAMETOOLONG;
	r = cgroup_lookup_stat(c, name, &st, &owner, NULL);
	if (r < 0)
		return r;
	if (owner)
		return cgroup_lookup_open(c, owner, name);
	fd = openat(c->mount_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

int cgroups_read(struct cgroups *c, const char *path, const char *file, char *text, size_t space)
{
	_cleanup_close_ int fd = cgroups_open_file(c, path, file);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, space - 1);
	if (n < 0)
		return -errno;
	text[n] = 0;
	return (int)n;
}

int cgroups_occupied(struct cgroups *c, const char *path)
{
	char one[2];
	int r;

	r = cgroups_read(c, path, "cgroup.procs", one, sizeof(one));
	/* A threaded cgroup lists threads only (kernel/cgroup/cgroup.c, __cgroup_procs_start). */
	if (r == -EOPNOTSUPP)
		r = cgroups_read(c, path, "cgroup.threads", one, sizeof(one));
	if (cgroupfs_vanished(r))
		return 0;
	return r > 0 ? 1 : r;
}

int cgroups_populated(struct cgroups *c, const char *path)
{
	char text[256];
	int r;

	r = cgroups_read(c, path, "cgroup.events", text, sizeof(text));
	if (cgroupfs_vanished(r))
		return 0;
	if (r < 0)
		return r;
	return strstr(text, "populated 0\n") ? 0 : 1;
}

int cgroups_of_pid(uint32_t pid, char *path, size_t space)
{
	char name[32], text[8192], *line, *end;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = 0;
	line = !strncmp(text, "0::", 3) ? text : strstr(text, "\n0::");
	if (!line)
		return -ENOENT;
	line = strchr(line, ':') + 2;
	end = strchr(line, '\n');
	if (!end)
		return -ENAMETOOLONG;
	*end = 0;
	if ((size_t)(end - line) >= space)
		return -ENAMETOOLONG;
	memcpy(path, line, (size_t)(end - line) + 1);
	return 0;
}

/*
 * Whether `path` may belong to the cgroup. If the directory's owner has closed it, or makes the
 * consumer wait in it, the ids cannot be compared. Then the consumer accepts the path that the
 * kernel gave for a process of the cgroup, so that no user can hide that way.
 */
static bool may_be(struct cgroups *c, const char *path, uint64_t id)
{
	uint64_t found = 0;
	int r = cgroups_id(c, path, &found);

	return r == 0 ? found == id : r == -EACCES || r == -EBUSY;
}

static struct cgroup *find_cgroup(struct cgroups *c, uint64_t id, uint32_t pid_hint)
{
	struct cgroup *known = idmap_get(&c->known, id);
	char path[4096] = "";

	if (known)
		return known;
	if (id == c->root_id) {
		cgroups_learn(c, id, "/");
		return idmap_get(&c->known, id);
	}
	if (pid_hint && cgroups_of_pid(pid_hint, path, sizeof(path)) == 0 && may_be(c, path, id)) {
		cgroups_learn(c, id, path);
		return idmap_get(&c->known, id);
	}
	cgroups_look_for(c, id);
	return NULL;
}

const char *cgroups_path(struct cgroups *c, uint64_t id, uint32_t pid_hint)
{
	const struct cgroup *known = find_cgroup(c, id, pid_hint);

	return known ? known->path : NULL;
}

const char *cgroups_container(struct cgroups *c, uint64_t id, struct container *ret_container)
{
	const struct cgroup *known = find_cgroup(c, id, 0);

	if (!known)
		return NULL;
	*ret_container = known->container;
	return known->path;
}

/* Returns the bytes of the first `levels` components of `path`, each with the '/' before it. */
static size_t prefix_bytes(const char *path, int levels)
{
	size_t bytes = 0;

	while (levels-- > 0 && path[bytes] == '/' && path[bytes + 1])
		bytes += 1 + strcspn(path + bytes + 1, "/");
	return bytes;
}

/*
 * Returns the uid of the first directory along `path` that is not root's, or 0 if all are root's;
 * `otherwise` if the path does not exist any more.
 */
static uint32_t look_up_owner(struct cgroups *c, const char *path, uint32_t otherwise)
{
	char name[4096];
	struct stat st;
	uint64_t owner;

	snprintf(name, sizeof(name), "%.*s", (int)prefix_bytes(path, OWNER_LEVELS), path);
	if (has_dots(name) || cgroup_lookup_stat(c, relative_path(name), &st, &owner, NULL) < 0)
		return otherwise;
	return st.st_uid;
}

bool cgroups_delegated(struct cgroups *c, const char *path, struct stat *ret_stat, size_t *bytes)
{
	const char *relative = relative_path(path);
	size_t skipped = strspn(path, "/"), found = *bytes - MIN(*bytes, skipped);
	uint64_t owner;
	int r;

	*bytes = 0;
	if (has_dots(path))
		return false;
	r = cgroup_lookup_stat(c, relative, ret_stat, &owner, &found);
	if (r == 0 && relative[found] && !ret_stat->st_uid)
		return false; /* it is root's, and other users may block lookups below it */
	*bytes = found + skipped;
	return r == 0 && ret_stat->st_uid;
}

bool cgroups_owner(struct cgroups *c, uint64_t id, uint32_t pid_hint,
		   char owner[CGROUP_OWNER_BYTES])
{
	struct cgroup *known = find_cgroup(c, id, pid_hint);
	uint64_t now = clock_mono_ns();
	size_t bytes;

	if (!known)
		return false;
	if (!known->owner_ns || now - known->owner_ns >= CGROUP_OWNER_NS) {
		known->owner_uid = look_up_owner(c, known->path, known->owner_uid);
		known->owner_ns = now;
	}
	bytes = prefix_bytes(known->path, 2);
	if (known->owner_uid)
		snprintf(owner, CGROUP_OWNER_BYTES, "uid %u", known->owner_uid);
	else
		snprintf(owner, CGROUP_OWNER_BYTES, "%.*s", bytes ? (int)bytes : 1, known->path);
	return true;
}
