/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the text report about memory. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

/* The share of each phase that has samples; nothing where none of them was a memory stall. */
static void test_stall(void **state)
{
	events_write(
		EVENTS_HEAD("session.end", "1") ",\"cpu_memory_stall\":{"
						"\"before\":{\"samples\":80,\"stalled\":2},"
						"\"during\":{\"samples\":200,\"stalled\":90}}}\n");
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nmemory stall on the CPU: 45.0 % of 200 samples during, 2.5 % of 80 samples before\n");
	events_write(
		EVENTS_HEAD("session.end", "1") ",\"cpu_memory_stall\":{"
						"\"during\":{\"samples\":200,\"stalled\":0}}}\n");
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "memory stall"));
}

/* The killed process, its memory, and the cgroup with the limit. */
static void test_kills(void **state)
{
	events_write(EVENTS_HEAD("oom", "1") ",\"pid\":77,\"comm\":\"hun\\u001bgry\",\"rss\":{"
					     "\"anon_bytes\":62914560,\"file_bytes\":4096,"
					     "\"shmem_bytes\":0},\"swap_bytes\":0,"
					     "\"limit\":\"cgroup\",\"limit_name\":\"api\","
					     "\"limit_cgroup\":\"/a/api\","
					     "\"limit_bytes\":67108864}\n" EVENTS_HEAD(
						     "oom", "1") ",\"pid\":78,\"comm\":\"b\","
								 "\"rss\":null,"
								 "\"limit\":\"machine\"}"
								 "\n" EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nkilled because memory ran out\n"
	    "  hun\\x1bgry (pid 77), which had 60.0 MiB of its own and 4.0 KiB of files; the limit of "
	    "64.0 MiB is that of /a/api\n"
	    "  b (pid 78); the machine had no more\n");
}

#define OF_RECLAIM(type, more) EVENTS_HEAD(type, "1") ",\"signal\":\"reclaim\"" more "}\n"

/* A row for each kind, and below them the other cgroups that were short of memory. */
static void test_reclaim(void **state)
{
	events_write(
		OF_RECLAIM("reclaim", ",\"kind\":\"limit\",\"count\":120,\"time_ns\":4980000000,"
				      "\"longest_ns\":81000000,\"reclaimed_bytes\":4931584,"
				      "\"open\":1,\"p50\":4194304,\"p99\":null")
			OF_RECLAIM("reclaim",
				   ",\"kind\":\"throttle\",\"device\":\"v\\u001bda\",\"count\":0,"
				   "\"time_ns\":5000,\"reclaimed_bytes\":0,\"open\":1")
				OF_RECLAIM("reclaim",
					   ",\"others\":2,\"count\":3,\"time_ns\":1,\"open\":0")
					OF_RECLAIM(
						"histogram",
						",\"key\":{\"of\":\"reclaim\",\"kind\":\"limit\"},"
						"\"buckets\":[[1024,1]],\"count\":1,\"sum\":1,\"p50\":1024")
						OF_RECLAIM(
							"neighbour",
							",\"neighbour\":\"/batch\",\"stretches\":90,\"limit_ms\":800,"
							"\"direct_ms\":12,\"reclaimed_bytes\":4096")
							OF_RECLAIM(
								"neighbour",
								",\"others\":3,\"stretches\":9,\"reclaimed_bytes\":4096")
								EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\ndirect reclaim and dirty throttling\n");
	has("limit");
	has("4.7 MiB");
	has("longer");
	has("throttle on v\\x1bda");
	has("2 more");
	has("  other cgroups: /batch, 812 ms in 90 events, 4.0 KiB reclaimed\n");
	has("  and 3 more cgroups: 0 ms in 9 events, 4.0 KiB reclaimed\n");
	assert_null(strstr(events_out, "waits for a CPU"));
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "direct reclaim and"));
}

UNIT_TESTS(text_report_memory)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stall, events_setup, events_teardown),
		cmocka_unit_test_setup_teardown(test_kills, events_setup, events_teardown),
		cmocka_unit_test_setup_teardown(test_reclaim, events_setup, events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
