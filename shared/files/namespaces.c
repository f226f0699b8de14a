/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/files/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

/* Inode numbers of the initial namespaces (include/linux/proc_ns.h). */
#define PID_INIT_INO	0xEFFFFFFCu
#define CGROUP_INIT_INO 0xEFFFFFFBu
#define TIME_INIT_INO	0xEFFFFFFAu

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

/* All users may read this file of every process, unless the mount hides it. */
const char *namespaces_hide_proc(void)
{
	_cleanup_close_ int fd = open("/proc/1/cgroup", O_RDONLY | O_CLOEXEC);

	return fd >= 0 || (errno != ENOENT && errno != EPERM && errno != EACCES)
		       ? NULL
		       : "/proc is mounted with hidepid=, which hides the processes of other users";
}

/*
 * Returns whether options such as "rw,hidepid=invisible,gid=5" have `key` with a value other than
 * `off` and `off_too`.
 */
static bool has_option(const char *options, size_t bytes, const char *key, const char *off,
		       const char *off_too)
{
	size_t key_bytes = strlen(key), n;

	for (const char *end = options + bytes; options < end; options += n + 1) {
		n = strcspn(options, ", ");
		if (n > key_bytes && !memcmp(options, key, key_bytes))
			return (n - key_bytes != strlen(off) ||
				memcmp(options + key_bytes, off, strlen(off)) != 0) &&
			       (n - key_bytes != strlen(off_too) ||
				memcmp(options + key_bytes, off_too, strlen(off_too)) != 0);
	}
	return false;
}

bool namespaces_proc_hides(const char *text, bool *ret_group)
{
	static const char mark[] = " /proc proc ";
	bool hides = false;

	*ret_group = false;
	/* The last mount covers the earlier ones. */
	for (const char *at = strstr(text, mark); at; at = strstr(at, mark)) {
		size_t bytes;

		at += strlen(mark);
		bytes = strcspn(at, " \n");
		hides = has_option(at, bytes, "hidepid=", "0", "off");
		*ret_group = has_option(at, bytes, "gid=", "0", "");
	}
	return hides;
}

/*
 * Returns whether an offset of time_namespaces(7) is not 0. A line is "monotonic SECONDS
 * NANOSECONDS".
 */
static bool has_offset(const char *offsets)
{
	for (const char *at = offsets; *at; at++)
		if ((at == offsets || strchr(" \t", at[-1])) && strchr("-123456789", *at))
			return true;
	return false;
}

const char *namespaces_shift_clocks(void)
{
	static const char path[] = "/proc/self/ns/time";
	_cleanup_free_ char *offsets = NULL;
	struct stat st;
	size_t bytes;

	/* A kernel before 5.6 or without CONFIG_TIME_NS has no time namespaces. */
	if (is_initial(path, TIME_INIT_INO) || (stat(path, &st) < 0 && errno == ENOENT))
		return NULL;
	if (io_read_file(AT_FDCWD, "/proc/self/timens_offsets", 4096, &offsets, &bytes) == 0 &&
	    !has_offset(offsets))
		return NULL;
	return "it runs in a time namespace of its own, whose clocks are shifted";
}

/* Every cgroup except the root of the hierarchy has this file (CFTYPE_NOT_ON_ROOT). */
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
