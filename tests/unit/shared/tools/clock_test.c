/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static void writes_known_moments(void **state)
{
	char text[CLOCK_TEXT_BYTES];

	clock_text(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000000Z");
	clock_text(951782399ULL * NSEC_PER_SEC + 999999999, text);
	assert_string_equal(text, "2000-02-28T23:59:59.999999999Z");
	clock_text(951782400ULL * NSEC_PER_SEC, text);
	assert_string_equal(text, "2000-02-29T00:00:00.000000000Z");
	clock_text(4107542400ULL * NSEC_PER_SEC, text);
	assert_string_equal(text, "2100-03-01T00:00:00.000000000Z");
	clock_text(UINT64_MAX, text);
	assert_string_equal(text, "2554-07-21T23:34:33.709551615Z");
	assert_int_equal(strlen(text), CLOCK_TEXT_BYTES - 1);
}

/* The C library is the judge: a moment of every third day of five centuries. */
static void agrees_with_gmtime(void **state)
{
	for (uint64_t s = 11; s < 18000000000ULL; s += 3 * 86400 + 3607) {
		char text[CLOCK_TEXT_BYTES], right[64];
		time_t t = (time_t)s;
		struct tm tm;

		assert_non_null(gmtime_r(&t, &tm));
		strftime(right, sizeof(right), "%Y-%m-%dT%H:%M:%S.000000005Z", &tm);
		clock_text(s * NSEC_PER_SEC + 5, text);
		assert_string_equal(text, right);
	}
}

static void clocks_run(void **state)
{
	uint64_t a = clock_mono_ns(), b = clock_mono_ns();
	uint64_t cpu = clock_cpu_ns();
	time_t now = time(NULL);

	while (clock_mono_ns() - b < 2000000)
		continue;
	assert_in_range(clock_cpu_ns(), cpu + 1, cpu + 60 * NSEC_PER_SEC);
	assert_true(b >= a && a > 0);
	assert_in_range(clock_real_ns() / NSEC_PER_SEC, (uint64_t)now - 2, (uint64_t)now + 60);
}

UNIT_TESTS(clock)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_known_moments),
		cmocka_unit_test(agrees_with_gmtime),
		cmocka_unit_test(clocks_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
