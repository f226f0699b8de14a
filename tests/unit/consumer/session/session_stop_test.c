/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <string.h>

#include "consumer/session/session_stop.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static struct session_result result;
static struct session session;
static struct sessions all;
static const struct session_stopped by = { true, 1000, 7 };

static int setup(void **state)
{
	result = (struct session_result){ .id = 0x1234 };
	session = (struct session){ .result = &result,
				    .end_ns = clock_mono_ns() + 60 * NSEC_PER_SEC };
	memset(&all, 0, sizeof(all));
	all.running[3] = &session;
	return 0;
}

static void test_ends_now(void **state)
{
	assert_int_equal(session_stop(&all, 0x1234, &by), 0);
	assert_true(session.end_ns <= clock_mono_ns());
	assert_true(result.stopped.stopped);
	assert_int_equal(result.stopped.uid, 1000);
	assert_int_equal(result.stopped.pid, 7);
}

static void test_none_runs(void **state)
{
	assert_int_equal(session_stop(&all, 0x1235, &by), -ENOENT);
	assert_true(session.end_ns > clock_mono_ns());
	assert_false(result.stopped.stopped);
}

/* A session that ends by itself cannot be ended. */
static void test_ends_already(void **state)
{
	session.ending = true;
	assert_int_equal(session_stop(&all, 0x1234, &by), 0);
	assert_false(result.stopped.stopped);
	session.ending = false;
	session.end_ns = clock_mono_ns() - 1;
	assert_int_equal(session_stop(&all, 0x1234, &by), 0);
	assert_false(result.stopped.stopped);
}

#define TEST(name) cmocka_unit_test_setup(test_##name, setup)

UNIT_TESTS(session_stop)
{
	const struct CMUnitTest tests[] = { TEST(ends_now), TEST(none_runs), TEST(ends_already) };

	return cmocka_run_group_tests_name("session_stop", tests, NULL, NULL);
}
