/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock of the loader: what others put in its place, and how it ends. */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/bpffs/lock_dir.h"

static char top[] = "/tmp/lock_dir_test.XXXXXX", path[64], aside[96];

static int setup(void **state)
{
	strcpy(top + strlen(top) - 6, "XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(path, sizeof(path), "%s/bpf-lock", top);
	snprintf(aside, sizeof(aside), "%s-%d", path, (int)getpid());
	return 0;
}

/* Fails when anything is left. */
static int teardown(void **state)
{
	return rmdir(top);
}

static void test_one_at_a_time(void **state)
{
	int fd = -1, other = -1;
	struct stat st;

	assert_int_equal(lock_dir_holder(path), 0);
	assert_int_equal(lock_dir_take(path, &fd), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(lock_dir_take(path, &other), -EBUSY);
	assert_int_equal(lock_dir_holder(path), getpid());
	lock_dir_release(path, &fd);
	assert_int_equal(fd, -1);
	assert_int_equal(access(path, F_OK), -1);
	lock_dir_release(path, &fd);
	assert_int_equal(lock_dir_take(path, &fd), 0);
	lock_dir_release(path, &fd);
}

/* A loader that was killed leaves the directory; the lock went with its descriptor. */
static void test_left_by_a_killed_one(void **state)
{
	int fd = -1;

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(lock_dir_holder(path), 0);
	assert_int_equal(lock_dir_take(path, &fd), 0);
	lock_dir_release(path, &fd);
}

/* What is not a directory of ours with mode 0700 is moved away, and its locks with it. */
static void test_what_others_put_there(void **state)
{
	static const char *const commands[] = {
		"mkdir -m 0755 $LOCK", "mkdir -m 0777 $LOCK; touch $LOCK/file",
		"touch $LOCK",	       "mkfifo $LOCK",
		"ln -s . $LOCK",       "ln -s nowhere $LOCK",
	};

	setenv("LOCK", path, 1);
	setenv("ASIDE", aside, 1);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		int held, fd = -1;

		assert_int_equal(system(commands[i]), 0); /* NOLINT: the test's own words */
		held = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (held >= 0)
			assert_int_equal(flock(held, LOCK_SH), 0);
		assert_int_equal(lock_dir_take(path, &fd), 0);
		lock_dir_release(path, &fd);
		if (held >= 0)
			close(held);
		assert_int_equal(system("rm -r $ASIDE"), 0); /* NOLINT: the test's own words */
	}
}

static void test_of_another_user(void **state)
{
	int held, fd = -1;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(path, 0700), 0);
	held = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(held >= 0);
	assert_int_equal(flock(held, LOCK_EX), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(lock_dir_take(path, &fd), 0);
	lock_dir_release(path, &fd);
	close(held);
	assert_int_equal(rmdir(aside), 0);
}

static void test_failures(void **state)
{
	int fd = -1;

	assert_int_equal(lock_dir_take("/nowhere/bpf-lock", &fd), -ENOENT);
	assert_int_equal(fd, -1);
	assert_int_equal(lock_dir_holder("/nowhere/bpf-lock"), 0);
}

UNIT_TESTS(lock_dir)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_by_a_killed_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_others_put_there, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_another_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
