/* SPDX-License-Identifier: BSD-2-Clause */
/* The causes in the report. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

#define END(more)                                                                                 \
	EVENTS_HEAD("session.end", "1")                                                           \
	",\"duration_ms\":2000,\"verdict\":\"complete\",\"headline\":\"/c/1 was looked at\"" more \
	"}\n"
#define FINDING(cause, of, says)                                                          \
	"{\"cause\":\"" cause "\",\"of\":\"" of "\",\"explains_ms\":1500,\"share\":0.75," \
	"\"certain\":true,\"says\":\"" says "\",\"evidence\":[]}"

static void report(const char *end)
{
	char lines[4096];

	snprintf(lines, sizeof(lines), "%s%s", EVENTS_START("1"), end);
	events_write(lines);
	assert_int_equal(events_command("report", "--full", events_file, NULL), 0);
}

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

/* Each has its share of the waits or its time, and the remedy below it, once per cause. */
static void test_findings(void **state)
{
	report(END(",\"findings\":[" FINDING("disk", "waiting", "it waited") "," FINDING(
		"starved_pool", "session",
		"no thread of worker- was free") "," FINDING("disk", "waiting",
							     "it waited more") "],"
									       "\"waited_ms\":2000,\"unexplained\":0.25"));
	has("findings: why its threads waited 2.0 s\n   75 %  it waited\n"
	    "  what helps: look at the other users of the disk; read less, or keep more in memory\n"
	    "  1.5 s  no thread of worker- was free\n"
	    "  what helps: look at the place where its threads wait instead of taking work");
	has("\n   75 %  it waited more\n   25 %  not explained\n");
}

/* An empty result is reported; a missing search is not. */
static void test_none(void **state)
{
	report(END(",\"findings\":[],\"waited_ms\":20,\"unexplained\":0"));
	has("findings: nothing unusual: its threads waited 20 ms in all\n");
	report(END(",\"findings_reason\":\"no signal says\""));
	assert_null(strstr(events_out, "findings"));
}

UNIT_TESTS(text_report_findings)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = { TEST(findings), TEST(none) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
