/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes by their /proc directory; the mapped files themselves are tests/broker's. */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/broker/broker_process.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define TICK_NS (NSEC_PER_SEC / 100)

static void stat_texts(void **state)
{
	static const char after[] = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n";
	static const char *const names[] = { "a", "a b", "a) S 9 (b", ")", "((", "" };
	char text[256];
	uint64_t ticks;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text, sizeof(text), "77 (%s)%s", names[i], after);
		ticks = 0;
		assert_int_equal(broker_process_stat(text, &ticks), 0);
		assert_int_equal(ticks, 4242);
	}
}

static void stat_texts_that_are_none(void **state)
{
	static const char *const texts[] = {
		"",
		"77",
		"77 (a",
		"77 (a) S 1 2",
		"77 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 ",
		"77 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 -5 0",
		"77 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99999999999999999999 0",
		"77 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242x 0",
	};
	uint64_t ticks = 7;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(broker_process_stat(texts[i], &ticks), -EBADMSG);
	assert_int_equal(ticks, 7);
}

static void cgroup_texts(void **state)
{
	static const struct {
		const char *text, *path; /* NULL: -ENOENT */
	} rows[] = {
		{ "0::/\n", "" },
		{ "0::/a/b\n", "a/b" },
		{ "4:cpu:/x\n1:name=systemd:/y\n0::/z\n", "z" },
		{ "0::/a b:c (deleted)\n", "a b:c (deleted)" },
		{ "0::/..a\n", "..a" },
		{ "0::/..\n", NULL },
		{ "0::/../a\n", NULL },
		{ "4:cpu:/0::/x\n", NULL },
		{ "10::/x\n", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *path = NULL;
		char text[128];

		strcpy(text, rows[i].text);
		assert_int_equal(broker_process_cgroup_path(text, &path),
				 rows[i].path ? 0 : -ENOENT);
		if (rows[i].path)
			assert_string_equal(path, rows[i].path);
	}
}

static void status_texts(void **state)
{
	static const struct {
		const char *text;
		uint32_t uid, pid; /* 0, 0: no such text */
	} rows[] = {
		{ "Name:\ta\nUid:\t1\t2\t3\t4\nNSpid:\t42\nSeccomp:\t0\n", 2, 42 },
		{ "Name:\ta\nUid:\t1\t2\t3\t4\nNSpid:\t42\t17\t1\n", 2, 1 },
		{ "Name:\tUid:\t5\t5\nUid:\t1\t4294967294\nNSpid:\t42\n", 4294967294, 42 },
		{ "Name:\ta\nUid:\t1\nNSpid:\t42\n", 0, 0 },
		{ "Name:\ta\nUid:\t1\t2x\nNSpid:\t42\n", 0, 0 },
		{ "Name:\ta\nUid:\t1\t99999999999\nNSpid:\t42\n", 0, 0 },
		{ "Name:\ta\nUid:\t1\t2\nNSpid:\t42", 0, 0 },
		{ "Name:\ta\nUid:\t1\t2\nNSpid:\n", 0, 0 },
		{ "Name:\ta\nUid:\t1\t2\nNSpid:\t-1\n", 0, 0 },
		{ "Name:\ta\nUid:\t1\t2\n", 0, 0 },
		{ "Uid:\t1\t2\nNSpid:\t42\n", 0, 0 },
		{ "", 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t uid = 0, pid = 0;

		assert_int_equal(broker_process_status(rows[i].text, &uid, &pid),
				 rows[i].pid ? 0 : -EBADMSG);
		assert_int_equal(uid, rows[i].uid);
		assert_int_equal(pid, rows[i].pid);
	}
}

/* When the process of `fd` started, by /proc: found by asking. */
static uint64_t start_of(pid_t pid)
{
	char path[64], text[4096];
	_cleanup_fclose_ FILE *file = NULL;
	uint64_t ticks;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	assert_int_equal(broker_process_stat(text, &ticks), 0);
	return ticks * TICK_NS;
}

static void start_times(void **state)
{
	_cleanup_close_ int fd = broker_process_open((uint32_t)getpid());
	uint64_t start_ns = start_of(getpid());
	int error = 0;

	assert_true(fd >= 0);
	assert_int_equal(broker_process_is(fd, start_ns, &error), REFUSAL_NONE);
	assert_int_equal(broker_process_is(fd, start_ns + TICK_NS - 1, &error), REFUSAL_NONE);
	assert_int_equal(broker_process_is(fd, start_ns + TICK_NS, &error), REFUSAL_OTHER_PROCESS);
	assert_int_equal(broker_process_is(fd, start_ns - 1, &error), REFUSAL_OTHER_PROCESS);
	assert_int_equal(broker_process_open(1u << 30), -ESRCH);
}

static pid_t sleeper(pid_t wanted)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pid_t pid;

	if (wanted) {
		args.set_tid = (uint64_t)(uintptr_t)&wanted;
		args.set_tid_size = 1;
	}
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/*
 * The process is exchanged between the two checks of a request, for real: the number lives on in
 * another process, the descriptor does not follow it.
 */
static void reused_between_the_checks(void **state)
{
	enum broker_refusal refusal = REFUSAL_NONE;
	_cleanup_close_ int fd = -1;
	int error = 0, file_fd = -1;
	uint64_t start_ns;
	pid_t pid, again;

	pid = sleeper(0);
	assert_true(pid > 0);
	start_ns = start_of(pid);
	fd = broker_process_open((uint32_t)pid);
	assert_int_equal(broker_process_is(fd, start_ns, &error), REFUSAL_NONE);
	end(pid);
	again = sleeper(pid);
	if (again < 0) {
		print_message("skipped: clone3 with set_tid: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(again, pid);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(broker_process_is(fd, start_ns, &error), REFUSAL_GONE);
	assert_int_equal(error, -ESRCH);
	assert_int_equal(broker_process_is(fd, start_of(pid), &error), REFUSAL_GONE);
	assert_int_equal(broker_process_mapping(fd, 4096, 8192, &file_fd, &refusal), -ESRCH);
	assert_int_equal(file_fd, -1);
	end(pid);
}

UNIT_TESTS(broker_process)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_texts),	cmocka_unit_test(stat_texts_that_are_none),
		cmocka_unit_test(cgroup_texts), cmocka_unit_test(status_texts),
		cmocka_unit_test(start_times),	cmocka_unit_test(reused_between_the_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
