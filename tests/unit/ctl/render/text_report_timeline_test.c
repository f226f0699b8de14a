/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <stdio.h>
#include <string.h>

#include "tests/unit/ctl/events_testing.h"

#define TIMELINE(more) EVENTS_HEAD("timeline", "1") more "}\n"
#define END                                                                                 \
	EVENTS_HEAD("session.end", "1")                                                     \
	",\"duration_ms\":2000,\"pre_ms\":3000,\"onset_ms\":1000,\"verdict\":\"complete\"," \
	"\"headline\":\"h\"}\n"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

static int plain(void **state)
{
	setenv("LC_ALL", "C", 1);
	return events_setup(state);
}

/* A strip for each part, as high as the part of the pool that did it. */
static void test_strips(void **state)
{
	events_write(
		TIMELINE(",\"pid\":77,\"start_ns\":5,\"pool\":\"w\\u001brk-\",\"slot_ms\":500,"
			 "\"slots\":10,\"slots_before\":6,\"looks\":[0,1,0,0,0,0,1,1,1,1],"
			 "\"unit_ms\":10,\"running\":[0,0,50,0,0,0,200,200,0,0],"
			 "\"blocked\":{\"lock\":[0,0,0,0,0,1,0,0,200,100],"
			 "\"idle\":[200,200,150,200,200,199,0,0,0,100],\"new\":[1]}")
			TIMELINE(",\"pid\":78,\"start_ns\":5,\"pool\":\"idle\",\"slot_ms\":500,"
				 "\"slots\":10,\"slots_before\":6,\"looks\":[],\"unit_ms\":1,"
				 "\"blocked\":{\"idle\":[500,500]}") END);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\ntimeline: states of threads over time; a column is 500 ms, | is the trigger, ~ the onset; "
	    "full height is all threads of the pool; . is not sampled\n"
	    "             ----~~|----\n"
	    "  w\\x1brk- (77), 4 threads at once\n"
	    "    running    -   |##\n"
	    "    lock     . ..._|  #=\n");
	assert_null(strstr(events_out, "78"));
}

/* Slots are joined where there are more than columns; the trigger stays between its own. */
static void test_narrow(void **state)
{
	char line[4096], row[512] = "1", looks[512] = "1";

	for (int i = 1; i < 100; i++) {
		strcat(row, i < 50 ? ",0" : ",100");
		strcat(looks, ",1");
	}
	snprintf(line, sizeof(line),
		 TIMELINE(",\"pid\":7,\"start_ns\":5,\"pool\":\"w\",\"slot_ms\":100,\"slots\":100,"
			  "\"slots_before\":50,\"looks\":[%s],\"unit_ms\":1,\"running\":[%s],"
			  "\"blocked\":{}") END,
		 looks, row);
	events_write(line);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("a column is 151 ms");
	has("             -5.0 s -------------------~~~~~~~|-------------------------- +5.0 s\n");
	has("    running  _                                |#################################\n");
}

/* More pools than are shown are counted; numbers that no line has draw nothing wrong. */
static void test_odd(void **state)
{
#define POOL(pid)                                                                              \
	TIMELINE(",\"pid\":" pid ",\"start_ns\":5,\"pool\":\"w\",\"slot_ms\":100,\"slots\":1," \
		 "\"slots_before\":0,\"looks\":[1],\"unit_ms\":1,\"running\":[9],\"blocked\":{}")
	events_write(POOL("1") POOL("2") POOL("3") POOL("4") POOL("5") POOL("6") POOL("7") POOL("8")
			     END);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("             |-\n  w (1), 1 thread\n    running  |_\n");
	has("  and 2 more\n");
	events_write(TIMELINE(",\"others\":3,\"slot_ms\":9007199254740991,\"slots\":999,"
			      "\"slots_before\":9999,\"looks\":7,\"unit_ms\":9007199254740991,"
			      "\"running\":[9007199254740991,-1,\"x\"],\"blocked\":[1]")
			     TIMELINE(",\"slots\":0,\"slot_ms\":100") TIMELINE(",\"slots\":3") END);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("  3 more pools, ");
}

UNIT_TESTS(text_report_timeline)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, plain, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(strips),
		TEST(narrow),
		TEST(odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
