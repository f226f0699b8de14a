/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/events/when.h"
#include "shared/tools/macro.h"

/* 2026-11-21T15:59:03Z, a Saturday; in Berlin it is 16:59:03. */
#define NOW_S 1795276743ULL
#define NOW   (NOW_S * NSEC_PER_SEC)

static void zone(const char *name)
{
	setenv("TZ", name, 1);
	tzset();
}

static void is(const char *text, uint64_t wanted_s)
{
	uint64_t ns;

	if (when_parse(text, NOW, &ns) < 0)
		fail_msg("refused: %s", text);
	if (ns != wanted_s * NSEC_PER_SEC)
		fail_msg("%s: %llu s, not %llu", text, (unsigned long long)(ns / NSEC_PER_SEC),
			 (unsigned long long)wanted_s);
}

static void test_before_now(void **state)
{
	is("now", NOW_S);
	is("-1h", NOW_S - 3600);
	is("-90min", NOW_S - 5400);
	is("-1h30m", NOW_S - 5400);
	is("-2d", NOW_S - 2 * 86400);
	is("-45s", NOW_S - 45);
	is("1h ago", NOW_S - 3600);
	is("2 hours ago", NOW_S - 7200);
	is("1 day 2 min ago", NOW_S - 86400 - 120);
}

static void test_local(void **state)
{
	zone("Europe/Berlin");
	is("2026-11-21 16:59:03", NOW_S);
	is("2026-11-21T16:59:03", NOW_S);
	is("2026-11-21 16:59", NOW_S - 3);
	is("16:59:03", NOW_S);
	is("16:59", NOW_S - 3);
	is("today", NOW_S - 16 * 3600 - 59 * 60 - 3);
	is("2026-11-21", NOW_S - 16 * 3600 - 59 * 60 - 3);
	is("yesterday", NOW_S - 16 * 3600 - 59 * 60 - 3 - 86400);
	is("2026-07-01 00:00", 1782856800); /* in summer it is two hours */
	zone("UTC");
	is("2026-11-21 15:59:03", NOW_S);
}

static void test_of_another_zone(void **state)
{
	zone("Europe/Berlin");
	is("2026-11-21T15:59:03Z", NOW_S);
	is("2026-11-21T15:59:03z", NOW_S);
	is("2026-11-21 15:59:03Z", NOW_S);
	is("2026-11-21T17:59:03+02:00", NOW_S);
	is("2026-11-21T10:29:03-0530", NOW_S);
	is("2026-11-21T17:59:03+02", NOW_S);
	zone("UTC");
}

static void test_fractions(void **state)
{
	uint64_t ns;

	assert_int_equal(when_parse("2026-11-21T15:59:03.5Z", NOW, &ns), 0);
	assert_int_equal(ns, NOW + NSEC_PER_SEC / 2);
	assert_int_equal(when_parse("2026-11-21T15:59:03.098828602Z", NOW, &ns), 0);
	assert_int_equal(ns, NOW + 98828602);
}

static void test_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"x",
		"-",
		"-1",
		"-1y",
		"1h",
		"-1h ago",
		"ago",
		"-1h x",
		"2026-13-01",
		"2026-11-21T25:00",
		"15:5",
		"15:59:03:1",
		"2026-11-21T15:59+1",
		"2026-11-21T15:59+15:00",
		"2026-11-21T15:59+02:60",
		"-99999999999999999999d",
		"-9999999999d",
		"tomorrow",
		"2026-11-21T15:59:03.5.5",
		"2026-11-21T15:59:03.000000000000000000000000Z",
	};
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (when_parse(texts[i], NOW, &ns) != -EINVAL)
			fail_msg("taken: %s", texts[i]);
}

UNIT_TESTS(when)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_now),	cmocka_unit_test(test_local),
		cmocka_unit_test(test_of_another_zone), cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("when", tests, NULL, NULL);
}
