/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/files/cgroupfs.h"

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

/* In a cgroup namespace of its own "/" is where this process is; what begins above it has more. */
static void prefers_the_mount_of_the_root(void **state)
{
	finds(V2 "1 1 0:27 /../.. /host rw - cgroup2 c rw\n2 1 0:27 /.. /b rw - cgroup2 c rw\n", 0,
	      "/host", CGROUP_UNIFIED);
	/* Above, and down again beside this process: that is another part. */
	finds("1 1 0:27 /../other /a rw - cgroup2 c rw\n" V2, 0, "/sys/fs/cgroup", CGROUP_UNIFIED);
	finds("1 1 0:27 /..x /a rw - cgroup2 c rw\n" V2, 0, "/sys/fs/cgroup", CGROUP_UNIFIED);
}

static void finds_v1(const char *mounts, const char *controller, int right_r, const char *right)
{
	char mount[PATH_MAX] = "untouched";

	assert_int_equal(cgroupfs_find_v1(mounts, controller, mount, sizeof(mount)), right_r);
	assert_string_equal(mount, right);
}

/* A controller's hierarchy, alone or with others in it; not a mount of another type. */
static void finds_a_controller(void **state)
{
	static const char both[] = V2 "3 1 0:30 / /c\\0401 rw - cgroup cgroup rw,cpu,cpuacct\n"
				      "4 1 0:31 / /m rw - cgroup cgroup rw,memory\n";

	finds_v1(both, "cpu", 0, "/c 1");
	finds_v1(both, "cpuacct", 0, "/c 1");
	finds_v1(both, "memory", 0, "/m");
	finds_v1(both, "mem", -ENOENT, "untouched");
	finds_v1(V2, "rw", -ENOENT, "untouched");
	finds_v1("", "cpu", -ENOENT, "untouched");
	/* In a namespace: what begins at its top or above it, not a part of it. */
	finds_v1("1 1 0:30 /sub /a rw - cgroup c rw,cpu\n2 1 0:30 / /b rw - cgroup c rw,cpu\n"
		 "3 1 0:30 /sub /d rw - cgroup c rw,cpu\n",
		 "cpu", 0, "/b");
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

static void skips_other_lines(void **state)
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

#define WALK_CUT 1000

/* What the walk of `base` returned; WALK_CUT when it left something out for its own limits. */
static int walk(size_t max, struct met *m)
{
	struct cgroupfs_left left = { 0 };
	int r = cgroupfs_walk(AT_FDCWD, base, max,
			      (struct cgroupfs_visitor){ .found = meet, .context = m }, &left);

	assert_int_equal(left.unread.count, 0);
	return left.cut ? WALK_CUT : r;
}

static void walks_a_tree(void **state)
{
	struct met m = { 0 };
	char path[PATH_MAX];
	struct stat st;

	assert_int_equal(make("/a") | make("/a/b") | make("/a/b/c"), 0);
	below(path, "/link"); /* a link is no cgroup, and must not lead out of the tree */
	assert_int_equal(symlink("/", path), 0);
	assert_int_equal(walk(100, &m), 0);
	assert_string_equal(m.paths, "/\n/a\n/a/b\n/a/b/c\n");
	below(path, "/a/b/c");
	assert_int_equal(stat(path, &st), 0);
	assert_true(m.last_id == st.st_ino);

	m = (struct met){ .stop_at = 2 };
	assert_int_equal(walk(100, &m), 77);
	assert_string_equal(m.paths, "/\n/a\n");

	m = (struct met){ 0 };
	assert_int_equal(walk(3, &m), WALK_CUT);
	assert_string_equal(m.paths, "/\n/a\n/a/b\n");
	m = (struct met){ 0 };
	assert_int_equal(walk(4, &m), 0);
	m = (struct met){ 0 };
	assert_int_equal(walk(0, &m), WALK_CUT);
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
	assert_int_equal(walk(1000, &m), WALK_CUT);
	assert_int_equal(m.count, 65); /* the root and 64 levels */
	drop(name);
	name[strlen(name) - 2] = '\0';
	m = (struct met){ 0 };
	assert_int_equal(walk(1000, &m), 0);
	assert_int_equal(m.count, 65);
	for (; name[0]; name[strlen(name) - 2] = '\0')
		drop(name);
}

/* The callback removes the reported directory, and one that the walk has yet to enter. */
static int vanish(void *context, const char *path, uint64_t id)
{
	size_t *count = context;

	(*count)++;
	drop("/x");
	drop("/y");
	drop("/z");
	return 0;
}

static void skips_removed_folders(void **state)
{
	struct cgroupfs_left left = { 0 };
	size_t count = 0;

	assert_int_equal(make("/x") | make("/y") | make("/z"), 0);
	assert_int_equal(
		cgroupfs_walk(AT_FDCWD, base, 1000,
			      (struct cgroupfs_visitor){ .found = vanish, .context = &count },
			      &left),
		0);
	assert_int_equal(count, 1);
	assert_int_equal(left.unread.count, 0);
	assert_false(left.cut);
}

static void says_that_there_is_no_mount(void **state)
{
	struct cgroupfs_left left = { 0 };
	struct met m = { 0 };

	assert_int_equal(cgroupfs_walk(AT_FDCWD, "/nonexistent", 10,
				       (struct cgroupfs_visitor){ .found = meet, .context = &m },
				       &left),
			 -ENOENT);
	assert_int_equal(m.count, 0);
}

/*
 * A tree of three kinds of directories, each with one below it: open ones; closed ones, as their
 * owner's chmod(2) leaves them; and some that only list names. Many of each: the order of a listing
 * is by hash, and directories after a closed one must be found.
 */
#define EACH 8

static const struct kind {
	const char *name;
	mode_t mode;
} kinds[] = { { "open", 0755 }, { "closed", 0700 }, { "listed", 0744 } };

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool make_tree(const char *top)
{
	char path[256];

	if (mkdir(top, 0755) < 0)
		return false;
	for (size_t i = 0; i < KINDS * EACH; i++) {
		const struct kind *k = &kinds[i / EACH];

		snprintf(path, sizeof(path), "%s/%s-%zu", top, k->name, i % EACH);
		assert_int_equal(mkdir(path, 0755), 0);
		snprintf(path, sizeof(path), "%s/%s-%zu/in", top, k->name, i % EACH);
		assert_int_equal(mkdir(path, 0755), 0);
		snprintf(path, sizeof(path), "%s/%s-%zu", top, k->name, i % EACH);
		assert_int_equal(chmod(path, k->mode), 0);
	}
	return true;
}

static void drop_tree(const char *top)
{
	char path[256];

	for (size_t i = 0; i < KINDS * EACH; i++) {
		const char *name = kinds[i / EACH].name;

		snprintf(path, sizeof(path), "%s/%s-%zu/in", top, name, i % EACH);
		rmdir(path);
		snprintf(path, sizeof(path), "%s/%s-%zu", top, name, i % EACH);
		rmdir(path);
	}
	rmdir(top);
}

struct seen {
	const char *top;
	size_t met[KINDS], below[KINDS]; /* directories of a kind, and those in them */
	size_t wrong;			 /* another id than stat(2) shows to root */
};

static int see(void *context, const char *path, uint64_t id)
{
	struct seen *s = context;
	char name[256], *at;
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", s->top, path);
	for (size_t i = 0; i < KINDS; i++) {
		at = strstr(path, kinds[i].name);
		if (at && strchr(at, '/'))
			s->below[i]++;
		else if (at)
			s->met[i]++;
	}
	if (seteuid(0) < 0 || stat(name, &st) < 0 || st.st_ino != id || seteuid(65534) < 0)
		s->wrong++;
	return 0;
}

/* All are reported but those below the closed ones, and these are counted. */
static void walk_as_nobody(const char *top)
{
	struct seen s = { .top = top };
	struct cgroupfs_left left = { 0 };
	int r;

	assert_int_equal(seteuid(65534), 0);
	r = cgroupfs_walk(AT_FDCWD, top, 1000,
			  (struct cgroupfs_visitor){ .found = see, .context = &s }, &left);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(r, 0);
	assert_int_equal(s.wrong, 0);
	for (size_t i = 0; i < KINDS; i++)
		assert_int_equal(s.met[i], EACH);
	assert_int_equal(s.below[0], EACH);
	assert_int_equal(s.below[1], 0);
	/* Their names are there, and their ids from the listing. */
	assert_int_equal(s.below[2], EACH);
	assert_int_equal(left.unread.count, EACH + EACH);
	assert_int_equal(left.unread.error, -EACCES);
	assert_non_null(strstr(left.unread.example, "/closed-")
				?: strstr(left.unread.example, "/listed-"));
	assert_false(left.cut);
	/* The root itself is another matter. */
	assert_int_equal(chmod(top, 0700), 0);
	left.unread.count = 77;
	assert_int_equal(seteuid(65534), 0);
	r = cgroupfs_walk(AT_FDCWD, top, 1000,
			  (struct cgroupfs_visitor){ .found = see, .context = &s }, &left);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(r, -EACCES);
	assert_int_equal(left.unread.count, 77);
}

static void goes_on_behind_a_closed_directory(void **state)
{
	char top[64] = "/tmp/cgroupfs_closed.XXXXXX";

	if (geteuid() != 0) {
		print_message("only root can become another user\n");
		skip();
	}
	assert_non_null(mkdtemp(top));
	assert_int_equal(rmdir(top), 0);
	assert_true(make_tree(top));
	walk_as_nobody(top);
	drop_tree(top);
}

/* The same in cgroup2, as the consumer meets it. */
static void goes_on_behind_a_closed_cgroup(void **state)
{
	char mount[PATH_MAX], top[PATH_MAX + 64];
	enum cgroup_mode mode;

	if (geteuid() != 0 || cgroupfs_find_here(mount, sizeof(mount), &mode) < 0)
		skip();
	snprintf(top, sizeof(top), "%s/trocar-unit-%d-closed", mount, (int)getpid());
	if (!make_tree(top)) {
		print_message("no cgroup can be made here: %s\n", strerror(errno));
		skip();
	}
	walk_as_nobody(top);
	drop_tree(top);
}

static int setup(void **state)
{
	return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
	return rmdir(base);
}

UNIT_TESTS(cgroupfs)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_the_modes_apart),
		cmocka_unit_test(prefers_the_whole_hierarchy),
		cmocka_unit_test(prefers_the_mount_of_the_root),
		cmocka_unit_test(finds_a_controller),
		cmocka_unit_test(decodes_octal_escapes),
		cmocka_unit_test(skips_other_lines),
		cmocka_unit_test(holds_the_space),
		cmocka_unit_test(reads_this_machine),
		cmocka_unit_test(walks_a_tree),
		cmocka_unit_test(stops_at_the_depth),
		cmocka_unit_test(skips_removed_folders),
		cmocka_unit_test(says_that_there_is_no_mount),
		cmocka_unit_test(goes_on_behind_a_closed_directory),
		cmocka_unit_test(goes_on_behind_a_closed_cgroup),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
