/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "shared/tools/macro.h"
#include "shared/tools/similar.h"

static const char *find(const char *typed)
{
	static const char *const words[] = { "status", "sessions",  "session",
					     "report", "capture",   "set",
					     "folded", "rules get", "rules set" };
	const char *best = NULL;
	size_t distance = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		similar_offer(typed, words[i], &best, &distance);
	return best;
}

static void one_letter_in_three(void **state)
{
	assert_string_equal(find("stauts"), "status");	/* exchanged */
	assert_string_equal(find("statuss"), "status"); /* doubled */
	assert_string_equal(find("reprt"), "report");	/* left out */
	assert_string_equal(find("sessien"), "session");
	assert_string_equal(find("rules gte"), "rules get");
	assert_string_equal(find("report"), "report");
	assert_null(find("rapart_"));
	assert_null(find("xy"));
	assert_null(find(""));
}

/* The beginning of a word means it, when it is long enough to mean one. */
static void beginnings(void **state)
{
	assert_string_equal(find("capt"), "capture");
	assert_string_equal(find("sess"), "sessions"); /* the first of two */
	assert_null(find("ca"));
}

static void long_words(void **state)
{
	const char *best = NULL;
	size_t distance = 0;

	similar_offer("012345678901234567890123456789012", "012345678901234567890123456789012",
		      &best, &distance);
	assert_null(best);
	similar_offer("01234567890123456789012345678901", "0123456789012345678901234567890x", &best,
		      &distance);
	assert_non_null(best);
	assert_int_equal(distance, 1);
}

UNIT_TESTS(similar)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_letter_in_three),
		cmocka_unit_test(beginnings),
		cmocka_unit_test(long_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
