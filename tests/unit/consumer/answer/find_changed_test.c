/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits that prove nothing by themselves, in places that are new. */
#include "consumer/answer/find_changed.h"

#include <string.h>

#include "consumer/sampling/wait_kind.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/unit_testing.h"

#define SECONDS 3

static struct session_result session;
static struct session_digest summary;

/* A search with this one row, in a session of 3 s with a baseline of 12 s: three passes. */
static struct findings_search search_of(struct session_wait *row, enum trigger_kind kind)
{
	struct findings_search s = { .session = &session, .summary = &summary };

	memset(&session, 0, sizeof(session));
	memset(&summary, 0, sizeof(summary));
	session.reason.kind = kind;
	session.stop_ns = SECONDS * NSEC_PER_SEC;
	summary.waits.rows = row;
	summary.waits.count = 1;
	summary.waits.during_ms = SECONDS * MSEC_PER_SEC;
	summary.waits.calm_ms = 12 * MSEC_PER_SEC;
	summary.waits.calm_passes = 3;
	s.found.time_ns[FINDINGS_WAITING] = find_changed_ns(&s);
	find_changed(&s);
	return s;
}

/* Eight threads in a place, each for the whole session. */
static struct session_wait row_of(uint8_t state)
{
	return (struct session_wait){ .fn = "wait_for_row",
				      .state = state,
				      .threads = 8,
				      .weight_ns = 8 * SECONDS * NSEC_PER_SEC };
}

static void test_new(void **state)
{
	struct session_wait row = row_of(ACCOUNT_LOCK);
	struct findings_search s;

	/* A lock is something else. */
	assert_int_equal(search_of(&row, TRIGGER_STUCK).found.count, 0);
	row.condition = true;
	s = search_of(&row, TRIGGER_STUCK);
	assert_int_equal(s.found.count, 1);
	assert_int_equal(s.found.items[0].cause, FINDING_CHANGED_WAIT);
	assert_int_equal(s.found.items[0].ns, row.weight_ns);
	assert_string_equal(
		s.found.items[0].says,
		"8 of its threads waited 24000 ms for a lock or another thread in wait_for_row, "
		"where the baseline has none of their time; what they wait for is not known");
	assert_int_equal(search_of(&row, TRIGGER_REQUEST).found.count, 1);
	/* An idle pool waits there at all times. */
	row.calm_ns = row.weight_ns / 20;
	s = search_of(&row, TRIGGER_STUCK);
	assert_non_null(strstr(s.found.items[0].says, "has at most a tenth of their time"));
	row.calm_ns = row.weight_ns / 5;
	assert_int_equal(search_of(&row, TRIGGER_STUCK).found.count, 0);
}

static void test_sleep(void **state)
{
	struct session_wait row = row_of(ACCOUNT_SLEEP);
	struct findings_search s;

	row.idle = true;
	s = search_of(&row, TRIGGER_QUIET);
	assert_int_equal(s.found.count, 1);
	assert_non_null(strstr(s.found.items[0].says, "8 of its threads slept for 24000 ms in "));
}

/* A request may be about a service that has no work. */
static void test_work(void **state)
{
	struct session_wait row = row_of(ACCOUNT_IDLE);

	row.idle = true;
	assert_int_equal(search_of(&row, TRIGGER_QUIET).found.count, 1);
	assert_int_equal(search_of(&row, TRIGGER_REQUEST).found.count, 0);
}

/* One thread that is there for a part of the time: the few passes may have missed it. */
static void test_few(void **state)
{
	struct session_wait row = row_of(ACCOUNT_LOCK);

	row.condition = true;
	row.threads = 1;
	row.weight_ns = SECONDS * NSEC_PER_SEC;
	assert_int_equal(search_of(&row, TRIGGER_STUCK).found.count, 0);
	/* With many services the recorder's passes are far apart: the number counts, not the time.
	 */
	row = row_of(ACCOUNT_LOCK);
	row.condition = true;
	search_of(&row, TRIGGER_STUCK);
	summary.waits.calm_passes = 0;
	assert_int_equal(find_changed_ns(&(struct findings_search){ .session = &session,
								    .summary = &summary }),
			 0);
	/* Without a baseline nothing is new. */
	row = row_of(ACCOUNT_LOCK);
	row.condition = true;
	assert_int_equal(search_of(&row, TRIGGER_STUCK).found.count, 1);
	summary.waits.calm_ms = 0;
	assert_int_equal(find_changed_ns(&(struct findings_search){ .session = &session,
								    .summary = &summary }),
			 0);
}

UNIT_TESTS(find_changed)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
