/* SPDX-License-Identifier: BSD-2-Clause */
/* How far findings answer why a session stalled. */
#include "consumer/answer/answer.h"

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/unit_testing.h"

static const struct trigger_reason stall = { .kind = TRIGGER_QUIET },
				   request = { .kind = TRIGGER_REQUEST };

/* Returns the level with one finding that explains `ms` of `of_ms`; 0: no finding. */
static enum answer_level level(const struct trigger_reason *reason, enum finding_cause cause,
			       uint64_t ms, uint64_t of_ms, bool is_root)
{
	struct findings found = {
		.time_ns = { [FINDINGS_WAITING] = of_ms * NSEC_PER_MSEC,
			     [FINDINGS_SESSION] = 2 * NSEC_PER_SEC },
	};
	struct finding f = { .cause = cause, .ns = ms * NSEC_PER_MSEC, .is_root = is_root };

	if (ms)
		findings_add(&found, &f);
	findings_sort(&found);
	return answer_of(&found, reason, 0, true).level;
}

static void test_level(void **state)
{
	assert_int_equal(level(&stall, FINDING_DEADLOCK, 900, 1000, false), ANSWER_CERTAIN);
	assert_int_equal(level(&stall, FINDING_LOCK_WAIT, 900, 1000, false), ANSWER_LIKELY);
	assert_int_equal(level(&stall, FINDING_DEADLOCK, 400, 1000, false), ANSWER_NOT_KNOWN);
	/* The root of the pressure is the answer, whatever else the threads waited for. */
	assert_int_equal(level(&stall, FINDING_CPU_QUOTA, 400, 1000, true), ANSWER_CERTAIN);
}

/* Nothing is unusual only where nothing was noticed, and no thread waited for long. */
static void test_nothing(void **state)
{
	struct answer unknown = answer_of(NULL, &request, 0, true);

	assert_int_equal(level(&request, FINDING_DISK, 0, 10, false), ANSWER_NOTHING);
	assert_int_equal(level(&stall, FINDING_DISK, 0, 10, false), ANSWER_NOT_KNOWN);
	assert_int_equal(level(&request, FINDING_DISK, 0, 2000, false), ANSWER_NOT_KNOWN);
	assert_int_equal(unknown.level, ANSWER_NOT_KNOWN);
	/* Where the waits were not sampled, or most samples are lost, nothing is excluded. */
	unknown = answer_of(&(struct findings){ .time_ns = { [FINDINGS_SESSION] = NSEC_PER_SEC } },
			    &request, 0, false);
	assert_int_equal(unknown.level, ANSWER_NOT_KNOWN);
	assert_int_equal(unknown.explained_pct, 0);
}

UNIT_TESTS(answer)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_level),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
