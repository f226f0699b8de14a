/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

#define HEAD(type, second)                                                 \
	"{\"v\":1,\"type\":\"" type "\",\"ts\":\"2026-11-21T15:59:" second \
	".1Z\",\"mono_ns\":" second
#define HELD(second, reason, more)                                                          \
	HEAD("trigger.held", second)                                                        \
	",\"rule\":\"api\",\"cgroup\":\"/c\",\"trigger\":\"pressure\",\"reason\":\"" reason \
	"\"" more "}\n"
#define CPU(ms) ",\"resource\":\"cpu\",\"kind\":\"some\",\"stall_ms\":" ms
#define SESSION EVENTS_END("1")
#define BESIDES "\n----\n\nbesides the sessions:\n"

static void ends_with(const char *end)
{
	size_t bytes = strlen(end), all = strlen(events_out);

	if (all < bytes || strcmp(events_out + all - bytes, end) != 0)
		fail_msg("does not end with %s: %s", end, events_out);
}

static void test_held(void **state)
{
	events_write(SESSION HELD("11", "budget_rule", CPU("200")) HELD(
		"12", "budget_rule", CPU("200") ",\"repeats\":4,\"largest_ms\":900,\"sum_ms\":1500")
			     HELD("13", "habit", ",\"share_pct\":3.5")
				     HELD("14", "session_running", CPU("200")));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	ends_with(
		BESIDES
		"  held back (budget_rule): 5 triggers, cpu, in /c, stalled for 1.7 s, at most 900 "
		"ms at once\n"
		"  held back (habit): 1 trigger, pressure, in /c\n");
}

static void test_errors(void **state)
{
	events_write(SESSION HEAD(
		"error", "11") ",\"code\":\"events_lost\",\"message\":\"3 events "
			       "were lost\",\"hint\":\"load with more\"}\n" HEAD(
				       "error", "12") ",\"code\":\"events_lost\",\"message\":"
						      "\"4 events\\u001b were lost\"}\n");
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	ends_with(
		BESIDES
		"  error events_lost, 2 times, the last at 2026-11-21T15:59:12 UTC: 4 events\\x1b "
		"were lost\n");
}

static void test_rejected(void **state)
{
	events_write(SESSION HEAD(
		"rules.rejected",
		"11") ",\"source\":\"file:/etc/trocar/rules.json\",\"fault_count\":1,\"faults\":[{"
		      "\"pointer\":\"/rules/0/name\",\"message\":\"is 1; must be text\"}]}\n");
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	ends_with(BESIDES
		  "  rules refused at 2026-11-21T15:59:11 UTC, from "
		  "file:/etc/trocar/rules.json: 1 fault: /rules/0/name is 1; must be text\n");
}

/* A selection of a time, a rule or one session gets nothing else. */
static void test_selected(void **state)
{
	events_write(SESSION HELD("11", "budget_rule", CPU("200")));
	events_command("report", "--full", events_file, "--until", "2026-11-21T15:59:10Z", NULL);
	assert_null(strstr(events_out, "besides"));
	events_command("report", "--full", events_file, "--rule", "rule1", NULL);
	assert_null(strstr(events_out, "besides"));
	events_command("report", "--full", events_file, "--session", "0000000000000001", NULL);
	assert_null(strstr(events_out, "besides"));
	events_command("report", "--full", events_file, "--cgroup", "/c", NULL);
	assert_non_null(strstr(events_out, "besides"));
}

/* Lines of any shape are shown as far as they go. */
static void test_odd(void **state)
{
	events_write(SESSION HEAD("rules.rejected", "11") ",\"faults\":7}\n" HEAD(
		"error", "12") "}\n" HEAD("trigger.held", "13") "}\n" HEAD("error",
									   "14") ",\"code\":{}}\n");
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FAILED);
	assert_non_null(strstr(events_out, "  rules refused at 2026-11-21T15:59:11 UTC"));
	assert_non_null(strstr(events_out, "  error - at 2026-11-21T15:59:12 UTC\n"));
	assert_non_null(strstr(events_out, "  held back (-): 1 trigger, -, in -\n"));
}

UNIT_TESTS(text_report_asides)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = { TEST(held), TEST(errors), TEST(rejected),
					    TEST(selected), TEST(odd) };

	return cmocka_run_group_tests_name("asides", tests, NULL, NULL);
}
