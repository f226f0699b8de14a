/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of a session on one screen. */
#include "tests/unit/runner/unit.h"

#include "ctl/render/brief.h"
#include "shared/tools/cleanup.h"
#include "tests/unit/ctl/events_testing.h"

#define FINDING(cause, of, says)                                                         \
	"{\"cause\":\"" cause "\",\"of\":\"" of "\",\"explains_ms\":1500,\"share\":0.2," \
	"\"level\":\"certain\",\"proof\":\"it was read\",\"says\":\"" says "\",\"evidence\":[]}"
#define ANSWER                                                                             \
	",\"answer\":{\"level\":\"certain\",\"explained_pct\":87,\"baseline\":\"before\"," \
	"\"baseline_ms\":4800}"

/* Writes a text of `n` words. */
static const char *words(unsigned int n, char *text)
{
	*text = '\0';
	for (unsigned int i = 0; i < n; i++)
		strcat(text, i ? " lengthy" : "lengthy");
	return text;
}

static void report(unsigned int n, const char *more)
{
	static char says[16384];
	_cleanup_free_ char *lines = NULL;

	words(n, says);
	assert_true(
		asprintf(
			&lines,
			"%s" EVENTS_HEAD(
				"session.end",
				"1") ",\"duration_ms\":2000,"
				     "\"verdict\":\"partial\",\"verdict_reason\":\"%s\","
				     "\"headline\":\"h %s\",\"findings\":[" FINDING(
					     "disk", "waiting",
					     "%s") "," FINDING("function", "running",
							       "%s") "," FINDING("peer", "waiting",
										 "%s") "],\"waited_ms\":2000,\"unexplained\":0.25%s}\n",
			EVENTS_START("1"), says, says, says, says, says, more) > 0);
	events_write(lines);
	assert_int_equal(events_command("report", events_file, NULL), 0);
}

/* However long its sentences are, it fits on a screen. */
static void test_fits(void **state)
{
	for (unsigned int n = 1; n < 1000; n = n * 3 + 1) {
		unsigned int lines = 0;

		report(n, ANSWER);
		for (const char *at = events_out, *end; (end = strchr(at, '\n')); at = end + 1) {
			assert_in_range(end - at, 0, BRIEF_COLUMNS + strlen(" ..."));
			lines++;
		}
		assert_in_range(lines, 10, BRIEF_LINES);
		assert_memory_equal(events_out, "h lengthy", 9);
		assert_non_null(strstr(events_out, "--full prints all of the evidence\n"));
		assert_non_null(strstr(events_out, "\nsession 0000000000000001, rule rule1"));
	}
}

static void test_answer(void **state)
{
	report(3, ANSWER);
	assert_non_null(strstr(events_out, "answer: certain; explains 87 % of the waits; compared "
					   "with the 4.8 s before\n"));
	assert_non_null(strstr(events_out, "\nquality: partial, lengthy lengthy lengthy\n"));
	assert_non_null(strstr(events_out, "\n   20 %  lengthy lengthy lengthy\n"));
	assert_non_null(strstr(events_out, "\n  1.5 s  lengthy lengthy lengthy\n"));
	/* Lines of older agents have no answer. */
	report(3, "");
	assert_null(strstr(events_out, "answer:"));
}

UNIT_TESTS(brief)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = { TEST(fits), TEST(answer) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
