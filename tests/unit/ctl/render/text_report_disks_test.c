/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the text report about disks. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

#define OF_BLOCK(type, more) EVENTS_HEAD(type, "1") ",\"signal\":\"block\"" more "}\n"

/* A row for each disk and operation, and below them the other users of the disk. */
static void test_disks(void **state)
{
	events_write(
		OF_BLOCK("disk",
			 ",\"device\":\"v\\u001bda\",\"op\":\"write\",\"requests\":1204,"
			 "\"bytes\":4931584,\"queue_ns\":12000000,\"service_ns\":4980000000,"
			 "\"longest_ns\":81000000,\"queue\":{\"p50\":1024,\"p99\":1024},"
			 "\"service\":{\"p50\":4194304,\"p99\":null},\"open\":1")
			OF_BLOCK("disk", ",\"others\":2,\"requests\":4,\"bytes\":16384,"
					 "\"queue_ns\":1,\"service_ns\":2")
				OF_BLOCK(
					"histogram",
					",\"key\":{\"of\":\"disk\",\"device\":\"vda\"},"
					"\"buckets\":[[1024,1]],\"count\":1,\"sum\":1,\"p50\":1024")
					OF_BLOCK("neighbour",
						 ",\"neighbour\":\"/batch\",\"neighbour_uid\":5,"
						 "\"neighbour_cgroups\":40,\"device\":\"vda\","
						 "\"requests\":3000,\"bytes\":4096,"
						 "\"service_ms\":8000,\"share\":0.612")
						OF_BLOCK("neighbour",
							 ",\"others\":3,\"requests\":9,"
							 "\"bytes\":4096,\"service_ms\":1")
							EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\ndisks: requests; P50 and P99 are of the time at the disk\n");
	has("v\\x1bda  write  1204      4.7 MiB");
	has("longer");
	has("2 more");
	has("  also on vda: /batch (uid 5, 40 cgroups), 61 % of the disk's time, 4.0 KiB in 3000 requests\n");
	has("  and 3 more cgroups: 4.0 KiB in 9 requests\n");
	assert_null(strstr(events_out, "waits for a CPU"));
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "disks: "));
}

/* What the disks are made of, each once; devices with only a name are left out. */
static void test_stacks(void **state)
{
	static const char stack[] =
		",\"stack\":[{\"device\":\"vda\",\"kind\":\"disk\"},{\"device\":\"vda1\","
		"\"kind\":\"partition\",\"over\":[\"vda\"],\"mounts\":[\"/\",\"/s\\u001brv\"],"
		"\"mounts_more\":4},{\"device\":\"dm-0\",\"kind\":\"dm\",\"name\":\"vg0\","
		"\"over\":[\"vda2\",\"vdb\"],\"over_more\":1},{\"device\":\"vda2\",\"swap\":true}]";
	char lines[4096];

	snprintf(
		lines, sizeof(lines),
		EVENTS_HEAD("disk", "1") ",\"signal\":\"block\",\"device\":\"vda\",\"op\":\"read\",\"errors\":7%s}\n" EVENTS_HEAD("disk", "1") ",\"signal\":\"block\",\"device\":\"vdb\",\"op\":\"read\"}\n" EVENTS_HEAD(
			"disk",
			"1") ",\"signal\":\"block\",\"device\":\"vda\",\"op\":\"write\"%s}\n" EVENTS_END("1"),
		stack, stack);
	events_write(lines);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("LONGEST  OPEN  ERRORS\n");
	has("0 s      0     7\n");
	has("\n  vda1 on vda at /, /s\\x1brv and 4 more; dm-0 (vg0) on vda2, vdb and 1 more; "
	    "vda2 for swap\n");
	assert_null(strstr(strstr(events_out, "vda1 on vda") + 1, "vda1 on vda"));
}

/* As many histograms as there are: those of disks hide none of the waits for a CPU behind them. */
static void test_many(void **state)
{
	const size_t each = 300, count = 300 + 4200;
	char *lines = malloc(count * each), *at = lines;

	assert_non_null(lines);
	for (int i = 0; i < 300; i++)
		at += sprintf(at,
			      EVENTS_HEAD("histogram",
					  "1") ",\"signal\":\"block\",\"key\":{\"of\":\"disk\","
					       "\"device\":\"vd%d\"},\"buckets\":[[1024,1]]}\n",
			      i);
	at += sprintf(
		at, "%s",
		EVENTS_HEAD(
			"histogram",
			"1") ",\"signal\":\"runq\",\"key\":{\"of\":\"all\"},"
			     "\"buckets\":[[2048,7]],\"count\":7,\"sum\":9000,\"p50\":2048,\"p99\":2048}\n" EVENTS_END(
				     "1"));
	events_write(lines);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nwaits for a CPU: 7, 9 us in all");
	assert_null(strstr(events_out, "left out"));
	at = lines;
	for (int i = 0; i < 4200; i++)
		at += sprintf(at, EVENTS_HEAD("disk", "1") ",\"signal\":\"block\",\"others\":%d}\n",
			      i + 1);
	sprintf(at, "%s", EVENTS_END("1"));
	events_write(lines);
	free(lines);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\n104 lines of this session are left out: more than 4096 of one type\n");
}

UNIT_TESTS(text_report_disks)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_disks, events_setup, events_teardown),
		cmocka_unit_test_setup_teardown(test_stacks, events_setup, events_teardown),
		cmocka_unit_test_setup_teardown(test_many, events_setup, events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
