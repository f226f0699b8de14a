/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report of a process in namespaces of its own; in the host's own there is nothing to report.
 */
#include "tests/unit/shared/unit_testing.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/files/cgroupfs.h"
#include "shared/files/namespaces.h"
#include "shared/tools/macro.h"

static char mount_point[PATH_MAX];

/* Calls `test` in a process with new namespaces; what it returns, or -1: they cannot be made. */
static int in_namespaces(int flags, int (*test)(void))
{
	int status, pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		int inner;

		if (unshare(flags) < 0)
			_exit(99);
		/* A new pid namespace begins with the next child. */
		inner = fork();
		if (!inner)
			_exit(test());
		if (inner < 0 || waitpid(inner, &status, 0) != inner)
			_exit(99);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 99 ? -1 : WEXITSTATUS(status);
}

/* 1: this process reports that it does not see all processes; 2: all cgroups. */
static int hidden(void)
{
	return (namespaces_hide_processes() ? 1 : 0) |
	       (namespaces_hide_cgroups(mount_point) ? 2 : 0);
}

static int setup(void **state)
{
	enum cgroup_mode mode;

	return cgroupfs_find_here(mount_point, sizeof(mount_point), &mode);
}

static void tells_new_namespaces(void **state)
{
	int here = hidden(), r = in_namespaces(CLONE_NEWPID | CLONE_NEWCGROUP, hidden);

	if (r < 0 || here)
		skip();
	assert_int_equal(r, 3);
	assert_int_equal(in_namespaces(CLONE_NEWPID, hidden), 1);
	assert_int_equal(in_namespaces(CLONE_NEWCGROUP, hidden), 2);
	assert_int_equal(in_namespaces(0, hidden), 0);
}

/* Becomes another user, which is not in the group of root either: gid= is 0 by default. */
static bool be_nobody(void)
{
	return setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
}

/* Another user in a mount of /proc that hides processes. */
static int hidden_proc(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, "hidepid=2") < 0)
		return 90;
	if (namespaces_hide_proc() || !be_nobody())
		return 91;
	return namespaces_hide_proc() ? 1 : 0;
}

static int shown_proc(void)
{
	return !be_nobody() ? 91 : namespaces_hide_proc() ? 1 : 0;
}

/* Root sees all processes; another user sees none of root's. */
static void tells_hidden_proc(void **state)
{
	int r;

	if (getuid() || namespaces_hide_proc())
		skip();
	r = in_namespaces(CLONE_NEWNS, hidden_proc);
	if (r < 0 || r == 90)
		skip();
	assert_int_equal(r, 1);
	assert_int_equal(in_namespaces(0, shown_proc), 0);
}

static void tells_proc_options(void **state)
{
	static const struct {
		const char *text;
		bool hides, group;
	} rows[] = {
		{ "", false, false },
		{ "proc /proc proc rw,nosuid,relatime 0 0\n", false, false },
		{ "proc /proc proc rw,hidepid=0 0 0\n", false, false },
		{ "proc /proc proc rw,hidepid=1 0 0\n", true, false },
		{ "proc /proc proc rw,relatime,gid=27,hidepid=invisible 0 0\n", true, true },
		{ "proc /proc proc rw,hidepid=ptraceable,gid=0 0 0\n", true, false },
		{ "proc /srv/proc proc rw,hidepid=2 0 0\n", false, false },
		{ "proc /proc proc rw,hidepid=2 0 0\nproc /proc proc rw 0 0\n", false, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool group;

		assert_int_equal(namespaces_proc_hides(rows[i].text, &group), rows[i].hides);
		assert_int_equal(group, rows[i].group);
	}
}

static int shifted(void)
{
	return namespaces_shift_clocks() ? 1 : 0;
}

/* Runs shifted() behind new clocks, the boot time's or the monotonic one's set by `offset`. */
static int shifted_by(const char *offset)
{
	int status, pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		int fd, inner;

		/* A new time namespace begins with the next child. */
		if (unshare(CLONE_NEWTIME) < 0)
			_exit(99);
		fd = open("/proc/self/timens_offsets", O_WRONLY);
		if (*offset && write(fd, offset, strlen(offset)) < 0)
			_exit(99);
		close(fd);
		inner = fork();
		if (!inner)
			_exit(shifted());
		if (inner < 0 || waitpid(inner, &status, 0) != inner)
			_exit(99);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void tells_shifted_clocks(void **state)
{
	if (shifted() || shifted_by("") == 99)
		skip();
	assert_int_equal(shifted_by(""), 0);
	assert_int_equal(shifted_by("monotonic -300 0"), 1);
	assert_int_equal(shifted_by("boottime 5000 0"), 1);
	assert_int_equal(shifted_by("monotonic 0 7"), 1);
}

/* A mount that begins at a cgroup below the root shows a part. */
static void tells_a_part(void **state)
{
	char below[PATH_MAX + 64];

	if (hidden())
		skip();
	snprintf(below, sizeof(below), "%s/trocar-unit-%d", mount_point, (int)getpid());
	if (mkdir(below, 0755) < 0)
		skip();
	assert_non_null(namespaces_hide_cgroups(below));
	assert_non_null(strstr(namespaces_hide_cgroups(below), "part"));
	assert_int_equal(rmdir(below), 0);
}

UNIT_TESTS(namespaces)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_new_namespaces), cmocka_unit_test(tells_a_part),
		cmocka_unit_test(tells_hidden_proc),	cmocka_unit_test(tells_proc_options),
		cmocka_unit_test(tells_shifted_clocks),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
