/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the text report about disks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

#define OF_BLOCK(type, more) EVENTS_HEAD(type, "1") ",\"signal\":\"block\"" more "}\n"

/* A row for each disk and operation, and below them who else had the disk. */
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
						 ",\"neighbour\":\"/batch\",\"device\":\"vda\","
						 "\"requests\":3000,\"bytes\":4096,"
						 "\"service_ms\":8000,\"share\":0.612")
						OF_BLOCK("neighbour",
							 ",\"others\":3,\"requests\":9,"
							 "\"bytes\":4096,\"service_ms\":1")
							EVENTS_END("1"));
	assert_int_equal(events_command("report", events_file, NULL), COMMAND_FINE);
	has("\nrequests to disks; P50 and P99 are of the time at the disk\n");
	has("v\\x1bda  write  1204      4.7 MiB");
	has("longer");
	has("2 more");
	has("  beside it on vda: /batch, 61 % of the disk's time, 4.0 KiB in 3000 requests\n");
	has("  and 3 more cgroups: 4.0 KiB in 9 requests\n");
	assert_null(strstr(events_out, "waits for a CPU"));
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "requests to disks"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_disks, events_setup, events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
