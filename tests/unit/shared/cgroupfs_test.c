/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/cgroupfs.h"

#define V2    "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1    "34 31 0:30 / /sys/fs/cgroup/cpu rw shared:12 master:3 - cgroup cgroup rw,cpu,cpuacct\n"
#define NAMED "33 31 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
#define ROOT  "28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"

static void finds(const char *mounts, int right_r, const char *right_mount, enum cgroup_mode right)
{
	enum cgroup_mode mode = CGROUP_NONE;
	char mount[PATH_MAX] = "untouched";

	assert_int_equal(cgroupfs_find(mounts, mount, sizeof(mount), &mode), right_r);
	assert_string_equal(mount, right_mount);
	assert_string_equal(cgroupfs_mode_name(mode), cgroupfs_mode_name(right));
}

static void tells_the_modes_apart(void **state)
{
	finds(ROOT V2, 0, "/sys/fs/cgroup", CGROUP_UNIFIED);
	finds(ROOT V2 NAMED, 0, "/sys/fs/cgroup", CGROUP_UNIFIED);
	finds(V1 V2, 0, "/sys/fs/cgroup", CGROUP_HYBRID);
	finds(V2 NAMED V1, 0, "/sys/fs/cgroup", CGROUP_HYBRID);
	finds(ROOT V1, -ENOENT, "untouched", CGROUP_V1_ONLY);
	finds(NAMED, -ENOENT, "untouched", CGROUP_V1_ONLY);
	finds(ROOT, -ENOENT, "untouched", CGROUP_NONE);
	finds("", -ENOENT, "untouched", CGROUP_NONE);
}

static void prefers_the_whole_hierarchy(void **state)
{
	finds("1 1 0:27 /sub /a rw - cgroup2 c rw\n" V2 "2 1 0:27 / /z rw - cgroup2 c rw\n", 0,
	      "/sys/fs/cgroup", CGROUP_UNIFIED);
	finds("1 1 0:27 /../.. /a rw - cgroup2 c rw\n2 1 0:27 /x /b rw - cgroup2 c rw\n", 0, "/a",
	      CGROUP_UNIFIED);
}

static void decodes_octal_escapes(void **state)
{
	finds("1 1 0:27 / /a\\040b\\011c\\012d\\134e rw - cgroup2 c rw\n", 0, "/a b\tc\nd\\e",
	      CGROUP_UNIFIED);
	/* What the kernel never writes stays as it is. */
	finds("1 1 0:27 / /a\\04 rw - cgroup2 c rw\n", 0, "/a\\04", CGROUP_UNIFIED);
	finds("1 1 0:27 / /a\\ rw - cgroup2 c rw\n", 0, "/a\\", CGROUP_UNIFIED);
	finds("1 1 0:27 / /a\\999 rw - cgroup2 c rw\n", 0, "/a\\999", CGROUP_UNIFIED);
}

static void passes_over_what_is_no_mount(void **state)
{
	finds("\n\n - \nx\n1 2 3 4 5 6 7\n1 2 3 / /q rw - \n- cgroup2\n" V2, 0, "/sys/fs/cgroup",
	      CGROUP_UNIFIED);
	/* A mount point or source named cgroup2 is none. */
	finds("1 1 0:27 / /cgroup2 rw cgroup2 - ext4 cgroup2 rw\n", -ENOENT, "untouched",
	      CGROUP_NONE);
	finds("1 1 0:27 / /a rw o:1 o:2 o:3 - cgroup2 c rw", 0, "/a", CGROUP_UNIFIED);
}

static void holds_the_space(void **state)
{
	enum cgroup_mode mode;
	char mount[15];

	assert_int_equal(cgroupfs_find(V2, mount, sizeof(mount), &mode), 0);
	assert_string_equal(mount, "/sys/fs/cgroup");
	assert_int_equal(cgroupfs_find(V2, mount, sizeof(mount) - 1, &mode), -ENAMETOOLONG);
}

static void reads_this_machine(void **state)
{
	enum cgroup_mode mode = CGROUP_NONE;
	char mount[PATH_MAX];
	int r = cgroupfs_find_here(mount, sizeof(mount), &mode);

	assert_true(r == 0 ? mode <= CGROUP_HYBRID && access(mount, X_OK) == 0
			   : r == -ENOENT && mode >= CGROUP_V1_ONLY);
}

struct met {
	char paths[4096]; /* each with a newline */
	uint64_t last_id;
	size_t count, stop_at;
};

static int meet(void *context, const char *path, uint64_t id)
{
	struct met *m = context;
	size_t at = strlen(m->paths);

	if (at + strlen(path) + 2 < sizeof(m->paths))
		snprintf(m->paths + at, sizeof(m->paths) - at, "%s\n", path);
	m->last_id = id;
	m->count++;
	return m->count == m->stop_at ? 77 : 0;
}

static char base[] = "/tmp/cgroupfs_test.XXXXXX";

static void below(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s%s", base, name);
}

static int make(const char *name)
{
	char path[PATH_MAX];

	below(path, name);
	return mkdir(path, 0700);
}

static void drop(const char *name)
{
	char path[PATH_MAX];

	below(path, name);
	rmdir(path);
}

static void walks_a_tree(void **state)
{
	struct met m = { 0 };
	char path[PATH_MAX];
	struct stat st;

	assert_int_equal(make("/a") | make("/a/b") | make("/a/b/c"), 0);
	below(path, "/link"); /* a link is no cgroup, and must not lead out of the tree */
	assert_int_equal(symlink("/", path), 0);
	assert_int_equal(cgroupfs_walk(base, 100, meet, &m), 0);
	assert_string_equal(m.paths, "/\n/a\n/a/b\n/a/b/c\n");
	below(path, "/a/b/c");
	assert_int_equal(stat(path, &st), 0);
	assert_true(m.last_id == st.st_ino);

	m = (struct met){ .stop_at = 2 };
	assert_int_equal(cgroupfs_walk(base, 100, meet, &m), 77);
	assert_string_equal(m.paths, "/\n/a\n");

	m = (struct met){ 0 };
	assert_int_equal(cgroupfs_walk(base, 3, meet, &m), -E2BIG);
	assert_string_equal(m.paths, "/\n/a\n/a/b\n");
	m = (struct met){ 0 };
	assert_int_equal(cgroupfs_walk(base, 4, meet, &m), 0);
	m = (struct met){ 0 };
	assert_int_equal(cgroupfs_walk(base, 0, meet, &m), -E2BIG);
	assert_int_equal(m.count, 0);

	below(path, "/link");
	unlink(path);
	drop("/a/b/c");
	drop("/a/b");
	drop("/a");
}

static void stops_at_the_depth(void **state)
{
	char name[PATH_MAX] = "";
	struct met m = { 0 };

	for (int i = 0; i < 65; i++) {
		strcat(name, "/d");
		assert_int_equal(make(name), 0);
	}
	assert_int_equal(cgroupfs_walk(base, 1000, meet, &m), -E2BIG);
	assert_int_equal(m.count, 65); /* the root and 64 levels */
	drop(name);
	name[strlen(name) - 2] = '\0';
	m = (struct met){ 0 };
	assert_int_equal(cgroupfs_walk(base, 1000, meet, &m), 0);
	assert_int_equal(m.count, 65);
	for (; name[0]; name[strlen(name) - 2] = '\0')
		drop(name);
}

/* The callback removes the directory that it is told of, and one that the walk has yet to enter. */
static int vanish(void *context, const char *path, uint64_t id)
{
	size_t *count = context;

	(*count)++;
	drop("/x");
	drop("/y");
	drop("/z");
	return 0;
}

static void passes_over_what_vanishes(void **state)
{
	size_t count = 0;

	assert_int_equal(make("/x") | make("/y") | make("/z"), 0);
	assert_int_equal(cgroupfs_walk(base, 1000, vanish, &count), 0);
	assert_int_equal(count, 1);
}

static void says_that_there_is_no_mount(void **state)
{
	struct met m = { 0 };

	assert_int_equal(cgroupfs_walk("/nonexistent", 10, meet, &m), -ENOENT);
	assert_int_equal(m.count, 0);
}

static int setup(void **state)
{
	return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
	return rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_the_modes_apart),
		cmocka_unit_test(prefers_the_whole_hierarchy),
		cmocka_unit_test(decodes_octal_escapes),
		cmocka_unit_test(passes_over_what_is_no_mount),
		cmocka_unit_test(holds_the_space),
		cmocka_unit_test(reads_this_machine),
		cmocka_unit_test(walks_a_tree),
		cmocka_unit_test(stops_at_the_depth),
		cmocka_unit_test(passes_over_what_vanishes),
		cmocka_unit_test(says_that_there_is_no_mount),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
