/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the text report about locks. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

#define LOCK(more) EVENTS_HEAD("lock", "1") ",\"signal\":\"lock\"" more "}\n"

/* A row for each lock, with its holder for most of the time. */
static void test_locks(void **state)
{
	events_write(LOCK(",\"pid\":77,\"start_ns\":5,\"comm\":\"api\",\"kind\":\"futex\","
			  "\"address\":\"0xc0de\",\"waits\":40,\"wait_ns\":4000000000,\"open\":0,"
			  "\"open_ns\":0,\"longest\":{\"wait_ns\":120000000},\"p50_ns\":5,"
			  "\"p99_ns\":110000000,\"threads\":3,\"wakers\":[{\"by\":\"thread\","
			  "\"pid\":77,\"tid\":80,\"comm\":\"w\\u001b-3\",\"waits\":9,"
			  "\"held_ns\":3000000000,\"fn\":\"flush\",\"module\":\"/m\"}]")
			     LOCK(",\"others\":4,\"waits\":4,\"wait_ns\":2000000,\"open\":0,"
				  "\"open_ns\":0,\"longest\":{\"wait_ns\":1000000}")
				     EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nlocks: that threads waited for (a pool that waits for work is in it too)\n");
	has("futex 0xc0de  w\\x1b-3 in flush 75 %\n");
	has("4 more locks");
	events_write(
		LOCK(",\"kind\":\"futex\",\"address\":\"0xc0de\",\"module\":\"/lib/libs\\u0007hop.so\","
		     "\"symbol\":\"led\\u0007ger\",\"symbol_offset\":40,\"waits\":40")
			LOCK(",\"kind\":\"futex\",\"address\":\"0xc0de\",\"module\":\"/bin/shop\","
			     "\"symbol_reason\":\"stripped\",\"waits\":4") EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("futex led\\x07ger+0x28 in libs\\x07hop.so");
	has("futex 0xc0de in shop");
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "locks: that threads"));
}

/* What a herd is stands below the table, in a sentence. */
static void test_herd(void **state)
{
	events_write(LOCK(",\"kind\":\"futex\",\"address\":\"0xc0de\",\"waits\":40,\"threads\":8,"
			  "\"again\":30,\"pattern\":\"herd\"") EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("  A thundering herd: each release of futex 0xc0de wakes several of 8 threads, and 30 "
	    "of 40 waits were of threads that had just been woken");
}

UNIT_TESTS(text_report_locks)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(locks),
		TEST(herd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
