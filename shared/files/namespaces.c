/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/files/namespaces.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/* Inode numbers of the namespaces that the kernel starts with (include/linux/proc_ns.h). */
#define PID_INIT_INO	0xEFFFFFFCu
#define CGROUP_INIT_INO 0xEFFFFFFBu

static bool is_initial(const char *path, ino_t initial)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_ino == initial;
}

const char *namespaces_hide_processes(void)
{
	return is_initial("/proc/self/ns/pid", PID_INIT_INO)
		       ? NULL
		       : "it runs in a pid namespace of its own, or without the host's /proc";
}

/* Every cgroup but the root of the hierarchy has this file (CFTYPE_NOT_ON_ROOT). */
static bool is_root(const char *mount)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/cgroup.events", mount);

	return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) < 0 && errno == ENOENT;
}

const char *namespaces_hide_cgroups(const char *mount)
{
	if (!is_root(mount))
		return "the cgroup2 that is mounted is only a part of the host's hierarchy";
	if (!is_initial("/proc/self/ns/cgroup", CGROUP_INIT_INO))
		return "it runs in a cgroup namespace of its own, where /proc/PID/cgroup has other "
		       "paths";
	return NULL;
}
