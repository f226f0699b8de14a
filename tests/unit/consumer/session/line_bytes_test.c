/* SPDX-License-Identifier: BSD-2-Clause */
/* How many bytes the sessions of an owner may write within an hour. */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>

#include "consumer/session/line_bytes.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define MINUTE_NS (60 * NSEC_PER_SEC)
#define NOW_NS	  (1000 * MINUTE_NS)

static void test_hour(void **state)
{
	struct line_bytes *b = calloc(1, sizeof(*b));
	uint64_t written = 0, now_ns = NOW_NS;

	assert_non_null(b);
	for (int i = 0; i < 200; i++, now_ns += MINUTE_NS / 10) {
		uint64_t left = line_bytes_left(b, 7, now_ns);

		assert_in_range(left, LINE_BYTES_LEAST, LINE_BYTES_SESSION);
		line_bytes_spend(b, 7, now_ns, left);
		written += left;
	}
	assert_in_range(written, LINE_BYTES_HOUR, LINE_BYTES_HOUR + 200 * LINE_BYTES_LEAST);
	/* Another owner has all of its own, and so has the first after the hour. */
	assert_int_equal(line_bytes_left(b, 8, now_ns), LINE_BYTES_SESSION);
	assert_int_equal(line_bytes_left(b, 7, now_ns + 61 * MINUTE_NS), LINE_BYTES_SESSION);
	free(b);
}

/* With more owners than are distinguished the last ones share, and no budget is counted twice. */
static void test_many_owners(void **state)
{
	struct line_bytes *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	for (uint64_t owner = 1; owner <= LINE_BYTES_OWNERS + 2; owner++)
		line_bytes_spend(b, owner, NOW_NS, LINE_BYTES_HOUR);
	assert_int_equal(line_bytes_left(b, 1, NOW_NS), LINE_BYTES_LEAST);
	assert_int_equal(line_bytes_left(b, 9999, NOW_NS), LINE_BYTES_LEAST);
	free(b);
}

static void test_allowance(void **state)
{
	struct line_allowance a = { .max = 100 };

	assert_true(line_bytes_take(&a, 50));
	assert_false(line_bytes_is_short(&a));
	assert_true(line_bytes_take(&a, 1));
	assert_true(line_bytes_is_short(&a));
	assert_false(line_bytes_take(&a, 50));
	assert_true(line_bytes_take(&a, 49));
	assert_int_equal(a.used, 100);
	/* However much there is, long names have a limit of their own. */
	a = (struct line_allowance){ .max = LINE_BYTES_SESSION, .used = LINE_BYTES_NAMED };
	assert_false(line_bytes_is_short(&a));
	assert_true(line_bytes_take(&a, 1));
	assert_true(line_bytes_is_short(&a));
}

UNIT_TESTS(line_bytes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hour),
		cmocka_unit_test(test_many_owners),
		cmocka_unit_test(test_allowance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
