/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <stdio.h>
#include <string.h>

#include "tests/unit/ctl/events_testing.h"

#define STACKS                                                                            \
	EVENTS_STACK("1", "before", "web", "1", "1000000",                                \
		     EVENTS_USER("quiet") "," EVENTS_USER("main"))                        \
	EVENTS_STACK("1", "during", "web", "3", "3000000",                                \
		     EVENTS_USER("spin") "," EVENTS_USER("spin") "," EVENTS_USER("main")) \
	EVENTS_STACK("1", "during", "log", "1", "1000000", EVENTS_USER("main"))

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

/* Of 4 ms in write, 3 were the kernel's: the program's function stands first, by its own. */
static void test_programs(void **state)
{
	events_write(EVENTS_STACK("1", "during", "a", "3", "3000000",
				  EVENTS_KERNEL("ksys_write") "," EVENTS_USER("write"))
			     EVENTS_STACK("1", "during", "a", "1", "1000000", EVENTS_USER("write"))
				     EVENTS_STACK("1", "before", "a", "1", "1000000",
						  EVENTS_KERNEL("idle")) EVENTS_END("1"));
	events_command("report", "--full", events_file, NULL);
	has("  100.0 %    0.0 %  =        25.0 %  write       a\n"
	    "   75.0 %    0.0 %  =        75.0 %  ksys_write  kernel\n"
	    "    0.0 %  100.0 %  =         0.0 %  idle        kernel\n");
	/* Most of the path was in the kernel: it begins there. */
	has("\ncall paths: where its threads ran, the heaviest first\n"
	    "  100.0 %  ksys_write < write\n");
}

/* Of 2 s before and 2 s during: what chance does not explain is a change. */
static void test_change(void **state)
{
	events_write(
		EVENTS_STACK("1", "before", "a", "30", "150000000", EVENTS_USER("less"))
			EVENTS_STACK("1", "during", "a", "20", "20000000", EVENTS_USER("less"))
				EVENTS_STACK("1", "before", "a", "20", "100000000",
					     EVENTS_USER("same")) EVENTS_STACK("1", "during", "a",
									       "190", "190000000",
									       EVENTS_USER("same"))
					EVENTS_STACK("1", "during", "a", "200", "200000000",
						     EVENTS_USER("fresh"))
						EVENTS_STACK("1", "before", "a", "40", "200000000",
							     EVENTS_USER("over")) EVENTS_END("1"));
	events_command("report", "--full", events_file, NULL);
	has(" new      48.8 %  fresh     a\n");
	has(" =        46.3 %  same      a\n");
	has(" /15.0     4.9 %  less      a\n");
	has(" gone      0.0 %  over      a\n");
}

#define WAITED(comm, idle, fn)                                                           \
	EVENTS_WAIT("1", "during", comm, "4", "400000000", EVENTS_BLOCKED("lock", idle), \
		    EVENTS_USER(fn))

#define ON_A_CONDITION EVENTS_BLOCKED("lock", "false,\"condition\":true")

/* What ran is one table; waits have their own paths, without those that had no work. */
static void test_ran_and_waited(void **state)
{
	events_write(STACKS WAITED("web", "false", "take") WAITED("web", "true", "rest")
			     EVENTS_WAIT("1", "during", "pool", "4", "900000000", ON_A_CONDITION,
					 EVENTS_USER("queue_pop")) EVENTS_END("1"));
	events_command("report", "--full", events_file, NULL);
	has("functions: 4 samples during, 1 before");
	has("\ncall paths: where its threads waited (without waits for work or on a condition), the heaviest first\n"
	    "  100.0 %  take\n");
	assert_null(strstr(events_out, "rest"));
	assert_null(strstr(events_out, "queue_pop"));
	/* A selection of one signal shows all of it. */
	events_command("report", "--full", "--signal", "offcpu", events_file, NULL);
	has("functions: 12 samples during, 0 before");
	has(" rest ");
	has(" queue_pop ");
}

/* Where nothing ran during the stall, there is no table of it. */
static void test_nothing_during(void **state)
{
	events_write(EVENTS_STACK("1", "before", "web", "4", "1000000", EVENTS_USER("quiet"))
			     EVENTS_END("1"));
	events_command("report", "--full", events_file, NULL);
	has("\nno sample during, 4 before (--phase before shows them)\n");
	assert_null(strstr(events_out, "quiet"));
	events_command("report", "--full", "--phase", "before", events_file, NULL);
	has("quiet");
}

static void test_top(void **state)
{
	events_write(STACKS);
	events_command("report", "--full", "--top", "1", events_file, NULL);
	has("  and 2 more (--top N)\n");
	assert_null(strstr(events_out, "quiet"));
	assert_int_equal(events_command("report", "--full", "--top", "0", events_file, NULL),
			 COMMAND_USAGE);
}

UNIT_TESTS(text_report_functions)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(programs), TEST(change), TEST(ran_and_waited), TEST(nothing_during), TEST(top),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
