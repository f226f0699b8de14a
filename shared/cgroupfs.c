/* SPDX-License-Identifier: BSD-2-Clause */
#include "cgroupfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cleanup.h"
#include "io.h"
#include "macro.h"

#define DEPTH_MAX    64
#define MOUNTS_BYTES (4u << 20) /* hosts with thousands of containers have long mount tables */

/* Places of fields in a line; behind the options come optional ones up to a "-". */
#define FIELD_ROOT    3
#define FIELD_MOUNT   4
#define FIELD_OPTIONS 5

const char *cgroupfs_mode_name(enum cgroup_mode mode)
{
	static const char *const names[] = {
		[CGROUP_UNIFIED] = "unified",
		[CGROUP_HYBRID] = "hybrid",
		[CGROUP_V1_ONLY] = "v1-only",
		[CGROUP_NONE] = "none",
	};

	return names[mode];
}

/* A piece of the mount table, not terminated. */
struct span {
	const char *at;
	size_t bytes;
};

static bool span_is(struct span s, const char *text)
{
	return s.bytes == strlen(text) && memcmp(s.at, text, s.bytes) == 0;
}

/* Cuts the next piece off `rest`, up to `end` or the end; empty when nothing is left. */
static struct span cut(struct span *rest, char end)
{
	const char *stop = rest->bytes ? memchr(rest->at, end, rest->bytes) : NULL;
	struct span s = { rest->at, stop ? (size_t)(stop - rest->at) : rest->bytes };
	size_t gone = s.bytes + (stop != NULL);

	rest->at += gone;
	rest->bytes -= gone;
	return s;
}

/* The fields of one line of mountinfo that matter here; see proc(5). */
struct mount {
	struct span root, point, type, options;
};

static bool split(struct span line, struct mount *ret_mount)
{
	struct mount m = { 0 };
	struct span field = { 0 };

	for (int i = 0; i <= FIELD_OPTIONS; i++) {
		field = cut(&line, ' ');
		if (i == FIELD_ROOT)
			m.root = field;
		else if (i == FIELD_MOUNT)
			m.point = field;
	}
	while (line.bytes && !span_is(field, "-"))
		field = cut(&line, ' ');
	if (!span_is(field, "-"))
		return false;
	m.type = cut(&line, ' ');
	cut(&line, ' '); /* source */
	m.options = line;
	*ret_mount = m;
	return m.point.bytes > 0;
}

/*
 * A v1 mount of a named hierarchy (name=systemd) holds no controller: it does not make a host
 * hybrid. Names: kernel/cgroup and the subsystems' legacy_name.
 */
static bool has_controller(struct span options)
{
	static const char *const names[] = {
		"blkio",   "cpu",      "cpuacct",    "cpuset", "debug",
		"devices", "freezer",  "hugetlb",    "memory", "misc",
		"net_cls", "net_prio", "perf_event", "pids",   "rdma"
	};

	while (options.bytes) {
		struct span option = cut(&options, ',');

		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (span_is(option, names[i]))
				return true;
	}
	return false;
}

static bool octal(const char *at)
{
	return at[0] >= '0' && at[0] <= '3' && at[1] >= '0' && at[1] <= '7' && at[2] >= '0' &&
	       at[2] <= '7';
}

/* The kernel writes space, tab, newline and backslash of a path as \ooo (fs/seq_file.c,
 * mangle_path). */
static int decode(struct span s, char *ret_text, size_t space)
{
	size_t n = 0;

	for (size_t i = 0; i < s.bytes; i++) {
		char c = s.at[i];

		if (c == '\\' && s.bytes - i > 3 && octal(s.at + i + 1)) {
			c = (char)((s.at[i + 1] - '0') << 6 | (s.at[i + 2] - '0') << 3 |
				   (s.at[i + 3] - '0'));
			i += 3;
		}
		if (n + 1 >= space)
			return -ENAMETOOLONG;
		ret_text[n++] = c;
	}
	ret_text[n] = '\0';
	return 0;
}

int cgroupfs_find(const char *mounts, char *ret_mount, size_t space, enum cgroup_mode *ret_mode)
{
	struct span rest = { mounts, strlen(mounts) }, best = { 0 };
	bool v1 = false, controllers = false, whole = false;

	while (rest.bytes) {
		struct mount m;

		if (!split(cut(&rest, '\n'), &m))
			continue;
		if (span_is(m.type, "cgroup")) {
			v1 = true;
			controllers |= has_controller(m.options);
		} else if (span_is(m.type, "cgroup2") && !whole) {
			whole = span_is(m.root, "/");
			if (whole || !best.bytes)
				best = m.point;
		}
	}
	if (best.bytes)
		*ret_mode = controllers ? CGROUP_HYBRID : CGROUP_UNIFIED;
	else
		*ret_mode = v1 ? CGROUP_V1_ONLY : CGROUP_NONE;
	return best.bytes ? decode(best, ret_mount, space) : -ENOENT;
}

int cgroupfs_find_here(char *ret_mount, size_t space, enum cgroup_mode *ret_mode)
{
	_cleanup_free_ char *mounts = NULL;
	size_t bytes;
	int r;

	r = io_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_BYTES, &mounts, &bytes);
	if (r < 0)
		return r;
	return cgroupfs_find(mounts, ret_mount, space, ret_mode);
}

/* A walk under way: one open directory per level, and the path down to the lowest. */
struct walk {
	DIR *dirs[DEPTH_MAX + 1];
	size_t path_bytes[DEPTH_MAX + 1]; /* of the path of that level, without "/" at its end */
	int depth;			  /* open levels */
	char path[PATH_MAX];
	size_t left; /* directories that may still be told */
	bool cut;    /* something was left out */
	int (*found)(void *context, const char *path, uint64_t id);
	void *context;
};

static void walk_done(struct walk *w)
{
	while (w->depth > 0)
		closedir(w->dirs[--w->depth]);
}

static bool vanished(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -ENOTDIR;
}

/* Opens `name`, tells the caller of it and makes it the lowest level. w->path holds its path. */
static int descend(struct walk *w, int dir_fd, const char *name, size_t path_bytes)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	DIR *dir;
	int r;

	if (w->left == 0 || w->depth > DEPTH_MAX) {
		w->cut = true;
		return 0;
	}
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (w->depth ? O_NOFOLLOW : 0));
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	w->left--;
	r = w->found(w->context, path_bytes ? w->path : "/", st.st_ino);
	if (r != 0)
		return r;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	TAKE_FD(fd);
	w->path_bytes[w->depth] = path_bytes;
	w->dirs[w->depth++] = dir;
	return 0;
}

static int step(struct walk *w)
{
	DIR *dir = w->dirs[w->depth - 1];
	size_t head = w->path_bytes[w->depth - 1], bytes;
	struct dirent *entry;
	int r;

	errno = 0;
	entry = readdir(dir);
	if (!entry) {
		r = -errno;
		closedir(w->dirs[--w->depth]);
		return vanished(r) ? 0 : r;
	}
	if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
	    strcmp(entry->d_name, "..") == 0)
		return 0;
	bytes = strlen(entry->d_name);
	if (head + 1 + bytes >= sizeof(w->path)) {
		w->cut = true;
		return 0;
	}
	w->path[head] = '/';
	memcpy(w->path + head + 1, entry->d_name, bytes + 1);
	r = descend(w, dirfd(dir), entry->d_name, head + 1 + bytes);
	return vanished(r) ? 0 : r;
}

int cgroupfs_walk(const char *mount, size_t max,
		  int (*found)(void *context, const char *path, uint64_t id), void *context)
{
	_cleanup_(walk_done) struct walk w = { .left = max, .found = found, .context = context };
	int r;

	r = descend(&w, AT_FDCWD, mount, 0);
	while (r == 0 && w.depth > 0 && !(w.cut && w.left == 0))
		r = step(&w);
	if (r != 0)
		return r;
	return w.cut ? -E2BIG : 0;
}
