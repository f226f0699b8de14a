/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "ctl/cli/confine.h"
#include "ctl/symbolize/resolver.h"
#include "policy/policy.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "tests/unit/ctl/specimens_testing.h"

static char data[ANSWER_BYTES];

static int confine(enum confine what)
{
	return what == CONFINE_RESOLVER ? policy_seccomp(POLICY_RESOLVER) : 0;
}

static void start(const char *name, struct resolver *ret_resolver)
{
	struct debug_files_pair pair = { .code = specimens_open(name), .debug = -1 };

	assert_true(pair.code >= 0);
	assert_int_equal(resolver_start(&pair, true, ret_resolver), 0);
	close(pair.code);
}

static void test_asks_and_ends(void **state)
{
	struct specimens_facts facts = { 0 };
	struct answer answer;
	struct resolver r;
	pid_t pid;

	assert_true(specimens_facts("pie", &facts));
	start("pie.full", &r);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			resolver_ask(&r, &(struct answer_question){ facts.at }, data, &answer), 0);
		assert_string_equal(answer.places[0].fn, "specimen_telling");
		assert_int_equal(answer.n, 3);
	}
	assert_int_equal(resolver_ask(&r, &(struct answer_question){ 1 }, data, &answer), 0);
	assert_int_equal(answer.unnamed, UNNAMED_NO_SYMBOL);
	pid = r.pid;
	resolver_stop(&r, false);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(r.pid, 0);
	resolver_stop(&r, false);
}

/* The same under the filter that the program gives it. */
static void test_confined(void **state)
{
	_cleanup_free_ char *status = NULL;
	struct answer answer;
	struct resolver r;
	char path[32];
	size_t bytes;

	confine_by(confine);
	test_asks_and_ends(state);
	start("pie.full", &r);
	assert_int_equal(resolver_ask(&r, &(struct answer_question){ 1 }, data, &answer), 0);
	snprintf(path, sizeof(path), "/proc/%d/status", r.pid);
	assert_int_equal(io_read_file(AT_FDCWD, path, 65536, &status, &bytes), 0);
	assert_non_null(strstr(status, "\nSeccomp:\t2\n"));
	resolver_stop(&r, false);
	confine_by(NULL);
}

/* A file that shrinks while it is mapped kills the resolver, and no other process. */
static void test_shrinking_file(void **state)
{
	_cleanup_close_ int whole = specimens_open("pie.full");
	struct debug_files_pair pair = { .code = memfd_create("shrinks", MFD_CLOEXEC),
					 .debug = -1 };
	_cleanup_free_ char *bytes = NULL;
	struct answer answer;
	struct resolver r;
	size_t n;

	assert_int_equal(io_read_fd(whole, 1 << 20, &bytes, &n), 0);
	assert_int_equal(io_write_full(pair.code, bytes, n), 0);
	assert_int_equal(resolver_start(&pair, true, &r), 0);
	assert_int_equal(resolver_ask(&r, &(struct answer_question){ 1 }, data, &answer),
			 0); /* it has its symbols */
	assert_int_equal(ftruncate(pair.code, 0), 0);
	assert_int_equal(resolver_ask(&r, &(struct answer_question){ 0x1140 }, data, &answer),
			 -EPIPE);
	assert_int_equal(resolver_ask(&r, &(struct answer_question){ 1 }, data, &answer), -EPIPE);
	resolver_stop(&r, false);
	close(pair.code);
}

static void test_killed(void **state)
{
	struct answer answer;
	struct resolver r;

	start("pie.full", &r);
	assert_int_equal(kill(r.pid, SIGKILL), 0);
	assert_int_equal(resolver_ask(&r, &(struct answer_question){ 1 }, data, &answer), -EPIPE);
	resolver_stop(&r, false);
}

UNIT_TESTS(resolver)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_asks_and_ends),
		cmocka_unit_test(test_shrinking_file),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_confined),
	};

	specimens_dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
