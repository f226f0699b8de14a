/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the text report about wait chains, and their form in `explain`. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

#define CHAIN(number, more)       \
	EVENTS_HEAD("chain", "1") \
	",\"signal\":\"lock\",\"chain\":" number ",\"says\":\"a for b\"" more "}\n"
#define LINK(comm, more) "{\"comm\":\"" comm "\",\"pid\":77,\"tid\":80,\"count\":3" more "}"

static const char lines[] = CHAIN(
	"1",
	",\"end\":\"kernel\",\"end_comm\":\"jb\\u001bd2\",\"links\":[" LINK("api-7", ",\"threads\":12,\"did\":\"waited\",\"wait\":\"lock\",\"ns\":1900000000") "," LINK(
		"wr\\u001biter-3",
		",\"threads\":1,\"did\":\"waited\",\"wait\":\"io\",\"ns\":1700000000,"
		"\"fn\":\"sync_log\",\"on\":{\"what\":\"file\",\"name\":\"wal\"}") "],\"partial\":true")
	CHAIN("2",
	      ",\"end\":\"ran\",\"links\":[" LINK(
		      "web-1",
		      ",\"threads\":1,\"did\":\"waited\",\"wait\":\"lock\",\"condition\":true,"
		      "\"ns\":900000000") "," LINK("batch",
						   ",\"threads\":1,\"did\":\"ran\",\"ns\":900000000,\"running_ns\":800000000,"
						   "\"queue_ns\":99000000,\"short_ns\":1") "]");

#define END                                                                                   \
	EVENTS_HEAD("session.end", "1")                                                       \
	",\"headline\":\"x\",\"ledger\":{},\"verdict\":\"complete\",\"waited_ms\":2000,"      \
	"\"unexplained\":0,\"findings\":[{\"cause\":\"lock_held\",\"of\":\"waiting\","        \
	"\"explains_ms\":1900,\"share\":0.95,\"certain\":true,\"says\":\"held\",\"chain\":1," \
	"\"evidence\":[{\"type\":\"chain\",\"chain\":1}]}]}\n"

/* Each link stands one step behind the one that waited for it. */
static void test_report(void **state)
{
	char text[8192];

	snprintf(text, sizeof(text), "%s%s", lines, EVENTS_END("1"));
	events_write(text);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nwait chains: the threads that threads waited for; each link waited for the one below it\n"
	    "  12 threads like api-7 waited 1.9 s: lock\n"
	    "    wr\\x1biter-3 waited 1.7 s: io, in sync_log, on file wal\n"
	    "      for jb\\x1bd2, a thread of the kernel\n"
	    "      some waits are missing in it: see the ledger of lock\n"
	    "  web-1 waited 900 ms: condition, lock\n"
	    "    batch ran 900 ms: 800 ms on a CPU, 99 ms without one\n");
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "wait chains"));
}

/* A finding has its chain; where the line is not there, its number alone. */
static void test_explain(void **state)
{
	char text[8192];

	snprintf(text, sizeof(text), "%s%s", lines, END);
	events_write(text);
	assert_int_equal(events_command("explain", events_file, NULL), COMMAND_FINE);
	has("   the threads that they waited for, link by link:\n"
	    "     12 threads like api-7 waited 1.9 s: lock\n"
	    "       wr\\x1biter-3 waited 1.7 s: io, in sync_log, on file wal\n");
	has(" and .type == \"chain\" and .chain == 1)' ");
	assert_null(strstr(events_out, "batch"));
	events_write(END);
	assert_int_equal(events_command("explain", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "link by link"));
}

UNIT_TESTS(text_report_chains)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_report, events_setup, events_teardown),
		cmocka_unit_test_setup_teardown(test_explain, events_setup, events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
