/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the text report about sockets. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

#define OF_SOCKET(more) EVENTS_HEAD("socket", "1") ",\"signal\":\"socket\"" more "}\n"
#define LEVEL(n)	"{\"first\":0,\"last\":0,\"most\":" n "}"

/* A row for each peer, and a line for each listener below them. */
static void test_sockets(void **state)
{
	events_write(
		OF_SOCKET(
			",\"way\":\"opened\",\"address\":\"10.0.0.5\",\"port\":5432,\"looks\":9,"
			"\"connections\":" LEVEL("8") ",\"unsent_bytes\":" LEVEL(
				"131072") ",\"begun\":2,\"refused\":1,\"timed_out\":4,\"bytes_out\":4931584,"
					  "\"retransmits\":41,\"srtt\":{\"p50\":25165824,\"most\":41000000}")
			OF_SOCKET(
				",\"way\":\"accepted\",\"address\":\"::1\",\"port\":80,\"looks\":9,"
				"\"connections\":" LEVEL("1"))
				OF_SOCKET(
					",\"way\":\"listens\",\"address\":\"\\u001b[0m\",\"port\":80,\"looks\":9,"
					"\"connections\":" LEVEL("1") ",\"queue\":" LEVEL(
						"129") ",\"queue_limit\":128,\"full_looks\":8,\"drops\":310")
					OF_SOCKET(
						",\"others\":12,\"looks\":9,\"connections\":" LEVEL(
							"13")) EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nTCP connections; ");
	has("10.0.0.5:5432  opened    8     2      5");
	has("4.7 MiB");
	has("128.0 KiB");
	has("[::1]:80");
	has("12 more");
	has("waited to be accepted (asked for 128), full in 8 of 9 snapshots, 310 times one was dropped\n");
	assert_null(strchr(events_out, '\033'));
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "TCP connections"));
}

UNIT_TESTS(text_report_sockets)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sockets, events_setup, events_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
