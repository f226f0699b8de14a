/* SPDX-License-Identifier: BSD-2-Clause */
/* memory_fixture.h: a group of the test's own with limited memory, wherever that controller is. */
#ifndef TROCAR_TESTS_BPF_MEMORY_FIXTURE_H
#define TROCAR_TESTS_BPF_MEMORY_FIXTURE_H

#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"

/* A memory cgroup: that of cgroup2, or one of its own in the v1 hierarchy. */
struct memory_group {
	char dir[4200];	  /* of cgroup2; its processes count there */
	char v1[4096];	  /* "" where the controller is in cgroup2 */
	const char *name; /* last part of the path of the limit's cgroup */
	uint64_t id;
};

static inline bool memory_write(const char *dir, const char *file, const char *text)
{
	char path[5000];
	int fd;
	bool good;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return good;
}

/* Sets the folder of the v1 hierarchy with the controller; false where there is none. */
static inline bool memory_find_v1(char *ret_dir, size_t space)
{
	FILE *mounts = setmntent("/proc/self/mounts", "r");
	struct mntent *m;
	bool found = false;

	while (mounts && !found && (m = getmntent(mounts))) {
		found = !strcmp(m->mnt_type, "cgroup") && hasmntopt(m, "memory");
		if (found)
			snprintf(ret_dir, space, "%s", m->mnt_dir);
	}
	endmntent(mounts);
	return found;
}

/*
 * Makes a group with a limit. False where no hierarchy has the controller. Remove the rest with
 * memory_remove, once its processes have gone.
 */
static inline bool memory_make(struct harness *h, const char *name, const char *bytes,
			       struct memory_group *ret_group)
{
	char root[4000];
	struct memory_group *g = ret_group;

	memset(g, 0, sizeof(*g));
	g->id = harness_group(h, name, g->dir);
	if (!memory_find_v1(root, sizeof(root))) {
		g->name = strrchr(g->dir, '/') + 1;
		memory_write(h->group, "../cgroup.subtree_control", "+memory");
		memory_write(h->group, "cgroup.subtree_control", "+memory");
		return memory_write(g->dir, "memory.max", bytes);
	}
	snprintf(g->v1, sizeof(g->v1), "%s/trocar-%d-%s", root, getpid(), name);
	rmdir(g->v1); /* of a test that failed */
	g->name = strrchr(g->v1, '/') + 1;
	return mkdir(g->v1, 0755) == 0 && memory_write(g->v1, "memory.limit_in_bytes", bytes);
}

static inline void memory_remove(const struct memory_group *g)
{
	for (int i = 0; g->v1[0] && rmdir(g->v1) < 0 && i < 100; i++)
		harness_sleep_ms(20);
}

/* In a child: joins the v1 group too. */
static inline void memory_join(const struct memory_group *g)
{
	if (g->v1[0] && !memory_write(g->v1, "cgroup.procs", "0"))
		_exit(98);
}

#endif
