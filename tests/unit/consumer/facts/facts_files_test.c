/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors against their limit: made-up texts, and this process. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/facts/facts_files.h"
#include "consumer/facts/facts_place.h"
#include "shared/tools/macro.h"

static bool parses(const char *text, uint64_t *ret_max)
{
	return facts_files_parse(text, strlen(text), ret_max);
}

static void test_parse(void **state)
{
	uint64_t max = 7;

	assert_true(parses("Limit                     Soft Limit           Hard Limit           "
			   "Units     \n"
			   "Max open files            1024                 524288               "
			   "files     \n",
			   &max));
	assert_int_equal(max, 1024);
	assert_true(parses("Max open files \t\n", &max) == false);
	assert_true(parses("Max open files            -5 7 files\n", &max) == false);
	assert_true(parses("Max open files            12", &max) == false); /* cut */
	assert_true(parses("max open files            12\n", &max) == false);
	assert_true(parses("", &max) == false);
	assert_int_equal(max, 1024);
}

/* The one nearest to its limit is taken; other words are passed over. */
static void test_own(void **state)
{
	struct rlimit before, low;
	struct facts f = {};
	char pids[64];
	struct stat st;
	int first = open("/dev/null", O_RDONLY | O_CLOEXEC), last = first, fd = first;

	assert_true(last >= 0);
	if (stat("/proc/self/fd", &st) < 0 || st.st_size <= 0)
		unit_skip("this kernel does not count open descriptors (6.2 does)");
	getrlimit(RLIMIT_NOFILE, &before);
	low = (struct rlimit){ (rlim_t)MAX(last + 8, FACTS_FILES_LEAST), before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (fd >= 0) {
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		last = fd >= 0 ? fd : last;
	}
	close(last); /* the reading needs one */
	prctl(PR_SET_NAME, "f\xff\"ull");
	snprintf(pids, sizeof(pids), "1\n%d\n4194305\nx\n%d\n", getpid(), getppid());
	assert_int_equal(stat("/proc/self/fd", &st), 0);
	facts_files_read(pids, strlen(pids), &f);
	for (fd = first; fd < last; fd++)
		close(fd);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(f.value[FACT_FILES_PID], getpid());
	assert_int_equal(f.value[FACT_FILES_MAX], low.rlim_cur);
	assert_int_equal(f.value[FACT_FILES_OPEN], st.st_size);
	assert_string_equal(f.files_comm, "f\xff\"ull");
	assert_int_equal(f.has,
			 1ULL << FACT_FILES_PID | 1ULL << FACT_FILES_OPEN | 1ULL << FACT_FILES_MAX);
}

/* A process that takes descriptors from itself has not used them up, and hides no other. */
static void test_sandbox(void **state)
{
	const rlim_t limits[] = { 0, 4, FACTS_FILES_LEAST - 1 };
	struct rlimit before, low;
	char pids[64];

	getrlimit(RLIMIT_NOFILE, &before);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct facts f = {};
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			low = (struct rlimit){ limits[i], before.rlim_max };
			while (limits[i] > 4 && dup(0) >= 0 && dup(0) < (int)limits[i] - 1)
				;
			setrlimit(RLIMIT_NOFILE, &low);
			raise(SIGSTOP);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
		snprintf(pids, sizeof(pids), "%d\n", pid);
		facts_files_read(pids, strlen(pids), &f);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		assert_int_equal(f.has, 0);
	}
}

/* Those beyond the first ones are counted. */
static void test_many(void **state)
{
	struct facts f = {};
	char pids[40 * 12], *at = pids;
	struct stat st;

	if (stat("/proc/self/fd", &st) < 0 || st.st_size <= 0)
		unit_skip("this kernel does not count open descriptors (6.2 does)");
	for (int i = 0; i < 40; i++)
		at += snprintf(at, 12, "%d\n", getpid());
	facts_files_read(pids, (size_t)(at - pids), &f);
	assert_int_equal(f.value[FACT_FILES_PID], getpid());
	assert_int_equal(f.value[FACT_FILES_UNASKED], 40 - FACTS_PLACE_PIDS);
}

static void test_none(void **state)
{
	struct facts f = {};

	facts_files_read("", 0, &f);
	facts_files_read("0\n4194305\nmax\n", strlen("0\n4194305\nmax\n"), &f);
	assert_int_equal(f.has, 0);
	assert_string_equal(f.files_comm, "");
}

UNIT_TESTS(facts_files)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	cmocka_unit_test(test_own),
		cmocka_unit_test(test_sandbox), cmocka_unit_test(test_many),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
