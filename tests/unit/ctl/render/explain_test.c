/* SPDX-License-Identifier: BSD-2-Clause */
/* The command that explains in sentences why a session's service stalled. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

#define START(reason) EVENTS_HEAD("session.start", "1") ",\"reason\":{" reason "}}\n"
#define END(more) \
	EVENTS_HEAD("session.end", "1") ",\"headline\":\"cart stalled\",\"ledger\":{}" more "}\n"
#define DISK                                                                                    \
	"{\"cause\":\"disk_neighbour\",\"of\":\"waiting\",\"explains_ms\":2500,\"share\":0.61," \
	"\"certain\":true,\"says\":\"its threads waited for v\\u001bda\",\"evidence\":"         \
	"[{\"type\":\"neighbour\",\"signal\":\"block\",\"neighbour\":\"/it's \\\"b\\\"\"}]}"
#define FUNCTION                                                                                                                     \
	"{\"cause\":\"function\",\"of\":\"running\",\"explains_ms\":500,\"share\":0.3,"                                              \
	"\"level\":\"likely\",\"proof\":\"the samples show where\",\"says\":\"keysCommand grew\",\"evidence\":[{\"type\":\"stack\"," \
	"\"signal\":\"oncpu\"}]}"

static void explain(const char *lines)
{
	events_write(lines);
	assert_int_equal(events_command("explain", events_file, NULL), COMMAND_FINE);
}

/* The symptom, the quality of the data, each cause with its proof, and the rest. */
static void test_causes(void **state)
{
	explain(START("\"pressure\":{\"resource\":\"io\",\"kind\":\"some\",\"stall_ms\":434,"
		      "\"window_ms\":2000}")
			END(",\"verdict\":\"partial\",\"verdict_reason\":\"20 % lost\","
			    "\"answer\":{\"level\":\"likely\",\"explained_pct\":61,"
			    "\"baseline\":\"none\"},\"findings\":[" DISK "," FUNCTION
			    "],\"waited_ms\":4100,"
			    "\"unexplained\":0.39"));
	has("cart stalled\nsession 0000000000000001, rule rule1");
	has("\nwhat was noticed: the kernel reports that its tasks stalled on io (some) for 434 ms in "
	    "a window of 2.0 s\n");
	has("how good the data are: partial, 20 % lost\n");
	has("\nwhy its threads waited, 4.1 s in all:\n\n"
	    "1. 61 % of its waits (2.5 s): its threads waited for v\\x1bda\n"
	    "   what helps: raise IOWeight=");
	has("   it rests on: jq -c 'select(.session == \"0000000000000001\" and .type == "
	    "\"neighbour\" and .signal == \"block\" and .neighbour == \"/it\\u0027s \\\"b\\\"\")' /");
	has("\nnot explained: 39 % of their waits (1.5 s)\n");
	has("\n2. for 500 ms: perhaps keysCommand grew\n   likely: the samples show where\n");
	has("\nhow sure the answer is: likely; explains 61 % of the waits; nothing to compare with\n");
}

/* Each way in which a session begins has its words. */
static void test_symptoms(void **state)
{
	explain(START("\"quiet\":{\"share_pct\":8.4,\"measured_ms\":5000}") END(""));
	has("noticed: its CPU time fell to 8 % of its usual value, over 5.0 s\n");
	explain(START("\"stuck\":{\"threads\":7,\"of_threads\":8,\"wait\":\"lock\","
		      "\"measured_ms\":900}") END(""));
	has("noticed: 7 of its 8 threads were in one kind of wait (lock) for 900 ms\n");
	explain(START("\"request\":{\"uid\":0,\"pid\":5,\"text\":\"p99\"}") END(""));
	has("noticed: nothing; uid 0 asked for it: p99\n");
	explain(START("\"exec\":{\"pid\":77,\"comm\":\"job\"}") END(""));
	has("noticed: nothing; job started, as process 77\n");
	explain(START("\"oom_kill\":{\"pid\":77,\"comm\":\"hun\\u001bgry\"}") END(""));
	has("noticed: memory ran out, and the kernel killed hun\\x1bgry, process 77\n");
}

static void test_nothing(void **state)
{
	explain(END(",\"findings\":[],\"waited_ms\":20,\"unexplained\":0"));
	has("nothing unusual: its threads waited 20 ms in all");
	explain(END(",\"findings_reason\":\"no signal says\""));
	has("no cause found: no signal says\n");
	explain(END(""));
	has("no cause recorded: these lines come from an older version");
	explain(START("\"exec\":{\"pid\":77,\"comm\":\"job\"}"));
	has("This session has no end here");
}

/* A key that is none of ours cannot become a part of the command that a person copies. */
static void test_hostile_keys(void **state)
{
	explain(END(",\"findings\":[{\"cause\":\"disk\",\"of\":\"waiting\",\"explains_ms\":1,"
		    "\"share\":1,\"certain\":true,\"says\":\"s\",\"evidence\":[{\"x)' ; rm '\":1,"
		    "\"\":2,\"type\":\"pool\"}]}],\"waited_ms\":1,\"unexplained\":0"));
	has("jq -c 'select(.session == \"0000000000000001\" and .type == \"pool\")' ");
	assert_null(strstr(events_out, "rm"));
}

UNIT_TESTS(explain)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(causes),
		TEST(symptoms),
		TEST(nothing),
		TEST(hostile_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
