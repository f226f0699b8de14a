/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "shared/tools/thread.h"

static void *read_name(void *context)
{
	prctl(PR_GET_NAME, context);
	return NULL;
}

static void expect_name(const char *name, const char *wanted)
{
	char before[THREAD_NAME_BYTES], found[THREAD_NAME_BYTES] = "", after[THREAD_NAME_BYTES];
	pthread_t thread;

	prctl(PR_GET_NAME, before);
	assert_int_equal(thread_start(&thread, NULL, name, read_name, found), 0);
	pthread_join(thread, NULL);
	prctl(PR_GET_NAME, after);
	assert_string_equal(found, wanted);
	assert_string_equal(after, before);
}

static void test_name(void **state)
{
	expect_name("walker", "walker");
	expect_name("a name of many bytes", "a name of many ");
}

/* A thread that cannot start leaves the caller its name. */
static void test_no_thread(void **state)
{
	char before[THREAD_NAME_BYTES], after[THREAD_NAME_BYTES], found[THREAD_NAME_BYTES];
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	assert_int_equal(pthread_attr_setstacksize(&attributes, (size_t)1 << 46), 0);
	prctl(PR_GET_NAME, before);
	assert_int_equal(thread_start(&thread, &attributes, "walker", read_name, found), -EAGAIN);
	prctl(PR_GET_NAME, after);
	assert_string_equal(after, before);
	pthread_attr_destroy(&attributes);
}

UNIT_TESTS(thread)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
