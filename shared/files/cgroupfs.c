/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/files/cgroupfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define DEPTH_MAX    64
#define MOUNTS_BYTES (4u << 20) /* hosts with thousands of containers have long mount tables */

/* Indices of fields in a line. Optional fields follow the options, up to a "-". */
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

/* A part of the mount table, without a NUL. */
struct span {
	const char *at;
	size_t bytes;
};

static bool span_is(struct span s, const char *text)
{
	return s.bytes == strlen(text) && memcmp(s.at, text, s.bytes) == 0;
}

/*
 * Cuts the next field off `rest`, up to `end` or to the end of `rest`, and returns it; it is empty
 * if nothing is left.
 */
static struct span cut_field(struct span *rest, char end)
{
	const char *stop = rest->bytes ? memchr(rest->at, end, rest->bytes) : NULL;
	struct span s = { rest->at, stop ? (size_t)(stop - rest->at) : rest->bytes };
	size_t gone = s.bytes + (stop != NULL);

	rest->at += gone;
	rest->bytes -= gone;
	return s;
}

/* The used fields of a line of mountinfo; see proc(5). */
struct mount {
	struct span root, point, type, options;
};

static bool split_mount(struct span line, struct mount *ret_mount)
{
	struct mount m = { 0 };
	struct span field = { 0 };

	for (int i = 0; i <= FIELD_OPTIONS; i++) {
		field = cut_field(&line, ' ');
		if (i == FIELD_ROOT)
			m.root = field;
		else if (i == FIELD_MOUNT)
			m.point = field;
	}
	while (line.bytes && !span_is(field, "-"))
		field = cut_field(&line, ' ');
	if (!span_is(field, "-"))
		return false;
	m.type = cut_field(&line, ' ');
	cut_field(&line, ' '); /* source */
	m.options = line;
	*ret_mount = m;
	return m.point.bytes > 0;
}

/*
 * Returns whether a v1 mount has a controller. The mount of a named hierarchy (name=systemd) has
 * none, and does not make a host hybrid. Names: kernel/cgroup and the subsystems' legacy_name.
 */
static bool has_controller(struct span options)
{
	static const char *const names[] = {
		"blkio",   "cpu",      "cpuacct",    "cpuset", "debug",
		"devices", "freezer",  "hugetlb",    "memory", "misc",
		"net_cls", "net_prio", "perf_event", "pids",   "rdma"
	};

	while (options.bytes) {
		struct span option = cut_field(&options, ',');

		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (span_is(option, names[i]))
				return true;
	}
	return false;
}

static bool is_octal(const char *at)
{
	return at[0] >= '0' && at[0] <= '3' && at[1] >= '0' && at[1] <= '7' && at[2] >= '0' &&
	       at[2] <= '7';
}

/*
 * Decodes a path: the kernel writes space, tab, newline and backslash as \ooo (fs/seq_file.c,
 * mangle_path).
 */
static int decode_path(struct span s, char *ret_text, size_t space)
{
	size_t n = 0;

	for (size_t i = 0; i < s.bytes; i++) {
		char c = s.at[i];

		if (c == '\\' && s.bytes - i > 3 && is_octal(s.at + i + 1)) {
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

/*
 * Returns the number of levels from the top of this process's cgroup namespace up to the root of a
 * mount: 0 for "/", 2 for "/../.." (kernel/cgroup/cgroup.c, cgroup_show_path); -1: the root is
 * below the top.
 */
static int levels_above(struct span root)
{
	int levels = 0;

	if (span_is(root, "/"))
		return 0;
	while (root.bytes >= 3 && memcmp(root.at, "/..", 3) == 0) {
		root.at += 3;
		root.bytes -= 3;
		levels++;
	}
	return root.bytes ? -1 : levels;
}

int cgroupfs_find(const char *mounts, char *ret_mount, size_t space, enum cgroup_mode *ret_mode)
{
	struct span rest = { mounts, strlen(mounts) }, best = { 0 };
	bool v1 = false, controllers = false;
	int best_levels = -1;

	while (rest.bytes) {
		struct mount m;

		if (!split_mount(cut_field(&rest, '\n'), &m))
			continue;
		if (span_is(m.type, "cgroup")) {
			v1 = true;
			controllers |= has_controller(m.options);
		} else if (span_is(m.type, "cgroup2")) {
			int levels = levels_above(m.root);

			if (levels > best_levels || !best.bytes)
				best = m.point;
			best_levels = MAX(best_levels, levels);
		}
	}
	if (best.bytes)
		*ret_mode = controllers ? CGROUP_HYBRID : CGROUP_UNIFIED;
	else
		*ret_mode = v1 ? CGROUP_V1_ONLY : CGROUP_NONE;
	return best.bytes ? decode_path(best, ret_mount, space) : -ENOENT;
}

static int read_mounts(char **ret_mounts)
{
	size_t bytes;

	return io_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_BYTES, ret_mounts, &bytes);
}

int cgroupfs_find_here(char *ret_mount, size_t space, enum cgroup_mode *ret_mode)
{
	_cleanup_free_ char *mounts = NULL;
	int r = read_mounts(&mounts);

	if (r < 0)
		return r;
	return cgroupfs_find(mounts, ret_mount, space, ret_mode);
}

/* Returns whether the options of a v1 mount name the controller. */
static bool has_option(struct span options, const char *name)
{
	while (options.bytes)
		if (span_is(cut_field(&options, ','), name))
			return true;
	return false;
}

int cgroupfs_find_v1(const char *mounts, const char *controller, char *ret_mount, size_t space)
{
	struct span rest = { mounts, strlen(mounts) }, best = { 0 };
	int best_levels = -1;

	while (rest.bytes) {
		struct mount m;

		if (!split_mount(cut_field(&rest, '\n'), &m) || !span_is(m.type, "cgroup") ||
		    !has_option(m.options, controller))
			continue;
		if (levels_above(m.root) > best_levels || !best.bytes)
			best = m.point;
		best_levels = MAX(best_levels, levels_above(m.root));
	}
	return best.bytes ? decode_path(best, ret_mount, space) : -ENOENT;
}

int cgroupfs_find_v1_here(const char *controller, char *ret_mount, size_t space)
{
	_cleanup_free_ char *mounts = NULL;
	int r = read_mounts(&mounts);

	if (r < 0)
		return r;
	return cgroupfs_find_v1(mounts, controller, ret_mount, space);
}

bool cgroupfs_vanished(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -ENOTDIR;
}

void cgroupfs_unread_add(struct cgroupfs_unread *u, const char *path, int error)
{
	if (u->count++)
		return;
	u->error = error;
	snprintf(u->example, sizeof(u->example), "%s", path);
}

/* One open directory per level, and the path of the lowest level. */
struct cgroupfs_walk {
	DIR *dirs[DEPTH_MAX + 1];
	size_t path_bytes[DEPTH_MAX + 1]; /* length of that level's path, without "/" at its end */
	int depth;			  /* open levels */
	char path[PATH_MAX];
	size_t reported, max; /* directories passed to `found`, and the limit */
	struct cgroupfs_left left;
	struct cgroupfs_visitor visitor;
};

void cgroupfs_walk_free(struct cgroupfs_walk *w)
{
	if (!w)
		return;
	while (w->depth > 0)
		closedir(w->dirs[--w->depth]);
	free(w);
}

/* Cuts w->path at `bytes` bytes and returns it; "/" for 0 bytes. */
static const char *path_of(struct cgroupfs_walk *w, size_t bytes)
{
	w->path[bytes] = '\0';
	return bytes ? w->path : "/";
}

/* Makes the directory `fd` the lowest level. Takes over `fd` only on success. */
static int enter_directory(struct cgroupfs_walk *w, int fd, size_t path_bytes)
{
	DIR *dir = fdopendir(fd);

	if (!dir)
		return -errno;
	w->path_bytes[w->depth] = path_bytes;
	w->dirs[w->depth++] = dir;
	return 0;
}

/*
 * Passes a directory below the root to `found`, and enters it unless the visitor's `enters` forbids
 * it. A directory that cannot be opened is passed too, with the id that its parent lists;
 * everything below it is omitted. Returns the first value other than 0 of `found` and `enters`.
 */
static int visit_directory(struct cgroupfs_walk *w, int parent_fd, const char *name, uint64_t id,
			   size_t path_bytes)
{
	_cleanup_close_ int fd = -1;
	bool enters = true;
	struct stat st;
	int error, r;

	fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	error = fd < 0 ? -errno : 0;
	if (cgroupfs_vanished(error))
		return 0;
	if (w->reported >= w->max || w->depth > DEPTH_MAX) {
		w->left.cut = true;
		return 0;
	}
	/*
	 * The parent may have listed an older directory with this name: take the id of the opened
	 * one.
	 */
	if (!error && fstat(fd, &st) < 0)
		error = -errno;
	if (!error)
		id = st.st_ino;
	w->reported++;
	r = w->visitor.found(w->visitor.context, path_of(w, path_bytes), id);
	if (r == 0 && !error && w->visitor.enters)
		r = w->visitor.enters(w->visitor.context, w->path, &st, &enters);
	if (r != 0 || !enters)
		return r;
	if (!error)
		error = enter_directory(w, fd, path_bytes);
	if (error)
		cgroupfs_unread_add(&w->left.unread, path_of(w, path_bytes), error);
	else
		TAKE_FD(fd);
	return 0;
}

static int begin_walk(struct cgroupfs_walk *w, int dir_fd, const char *top)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r;

	if (w->reported >= w->max) {
		w->left.cut = true;
		return 0;
	}
	fd = openat(dir_fd, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	w->reported++;
	r = w->visitor.found(w->visitor.context, "/", st.st_ino);
	if (r == 0)
		r = enter_directory(w, fd, 0);
	if (r == 0)
		TAKE_FD(fd);
	return r;
}

/*
 * Closes the lowest level, which was read to its end or until `error`. Returns only errors of the
 * top.
 */
static int leave_directory(struct cgroupfs_walk *w, int error)
{
	size_t path_bytes = w->path_bytes[w->depth - 1];

	closedir(w->dirs[--w->depth]);
	if (!error || cgroupfs_vanished(error))
		return 0;
	if (!w->depth)
		return error;
	cgroupfs_unread_add(&w->left.unread, path_of(w, path_bytes), error);
	return 0;
}

static int step_walk(struct cgroupfs_walk *w)
{
	DIR *dir = w->dirs[w->depth - 1];
	size_t head = w->path_bytes[w->depth - 1], bytes;
	struct dirent *entry;

	errno = 0;
	entry = readdir(dir);
	if (!entry)
		return leave_directory(w, -errno);
	if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
	    strcmp(entry->d_name, "..") == 0)
		return 0;
	bytes = strlen(entry->d_name);
	if (head + 1 + bytes >= sizeof(w->path)) {
		w->left.cut = true;
		return 0;
	}
	w->path[head] = '/';
	memcpy(w->path + head + 1, entry->d_name, bytes + 1);
	return visit_directory(w, dirfd(dir), entry->d_name, entry->d_ino, head + 1 + bytes);
}

int cgroupfs_walk_new(int dir_fd, const char *top, size_t max, struct cgroupfs_visitor visitor,
		      struct cgroupfs_walk **ret_walk)
{
	struct cgroupfs_walk *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->max = max;
	w->visitor = visitor;
	r = begin_walk(w, dir_fd, top);
	if (r != 0) {
		cgroupfs_walk_free(w);
		return r;
	}
	*ret_walk = w;
	return 0;
}

bool cgroupfs_walk_more(const struct cgroupfs_walk *w)
{
	return w->depth > 0 && !(w->left.cut && w->reported >= w->max);
}

int cgroupfs_walk_step(struct cgroupfs_walk *w)
{
	return cgroupfs_walk_more(w) ? step_walk(w) : 0;
}

struct cgroupfs_left cgroupfs_walk_left(const struct cgroupfs_walk *w)
{
	return w->left;
}

int cgroupfs_walk(int dir_fd, const char *top, size_t max, struct cgroupfs_visitor visitor,
		  struct cgroupfs_left *ret_left)
{
	struct cgroupfs_walk *w;
	int r = cgroupfs_walk_new(dir_fd, top, max, visitor, &w);

	if (r != 0)
		return r;
	while (r == 0 && cgroupfs_walk_more(w))
		r = cgroupfs_walk_step(w);
	if (r == 0)
		*ret_left = w->left;
	cgroupfs_walk_free(w);
	return r;
}
