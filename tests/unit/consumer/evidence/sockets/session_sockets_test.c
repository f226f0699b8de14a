/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about sockets, against their schemas. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/sockets/session_sockets.h"

#include <string.h>
#include <sys/socket.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static json_object *report(const struct socket_peers *peers)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_SOCKET, &host, &target);
	json_object *lines;

	assert_non_null(signal);
	signal->evidence = (void *)peers;
	signal->counted = peers ? &peers->ledger : NULL;
	s->signals[SIGNAL_SOCKET] = signal;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	report_testing_report(s);
	lines = report_testing_finish();
	session_result_free(s);
	return lines;
}

static void test_lines(void **state)
{
	struct socket_peer items[2] = {
		{ .key = { .port = 443,
			   .family = AF_INET6,
			   .way = SOCKET_OPENED,
			   .address = { 0x20, 1, [15] = 1 } } },
		{ .key = { .port = 80, .family = AF_INET, .way = SOCKET_LISTENS } }
	};
	struct socket_peers peers = {
		.items = items, .count = 2, .others = 3, .looks = 4, .counted = true
	};
	json_object *lines, *line;

	items[0].most[SOCKET_LEVEL_CONNECTIONS] = items[0].last[SOCKET_LEVEL_CONNECTIONS] = 2;
	items[0].states[1] = 2;
	items[0].counts[SOCKET_BYTES_OUT] = 9000;
	items[0].srtt[10] = 2;
	items[0].srtt_most_ns = 30000;
	items[0].worst = (struct socket_worst){ .tgid = 7, .peer_port = 443, .comm = "a\033b" };
	items[1].most[SOCKET_LEVEL_CONNECTIONS] = 1;
	items[1].queue_max = 128;
	peers.all = items[0];
	peers.all.counts[SOCKET_LIFE_NS] = 5000;
	peers.all.life[4] = 1;
	peers.all.srtt_sum_ns = 60000;
	peers.ledger = (struct ledger){ .attempted = 9, .emitted = 8 };
	peers.ledger.lost[DROP_SOCKETS_FULL] = 1;
	lines = report(&peers);
	line = at(lines, 0);
	assert_string_equal(get(line, "type"), "socket");
	assert_string_equal(get(line, "way"), "opened");
	assert_string_equal(get(line, "address"), "2001::1");
	assert_int_equal(number(line, "bytes_out"), 9000);
	assert_int_equal(number(line, "retransmits"), 0);
	assert_int_equal(number(json_object_object_get(line, "states"), "established"), 2);
	assert_false(json_object_object_get_ex(line, "begun", NULL));
	line = at(lines, 1);
	assert_int_equal(number(line, "queue_limit"), 128);
	assert_false(json_object_object_get_ex(line, "bytes_in", NULL));
	assert_int_equal(number(at(lines, 2), "others"), 3);
	/* Two histograms, life and srtt, and the end. */
	assert_int_equal(json_object_array_length(lines), 3 + 2 + 1);
	line = json_object_object_get(at(lines, 5), "sockets");
	assert_int_equal(number(line, "peers"), 5);
	assert_int_equal(number(line, "connections"), 2);
	assert_int_equal(number(line, "bytes_out"), 9000);
	json_object_put(lines);
}

static void test_missing(void **state)
{
	json_object *lines = report(NULL), *end = at(lines, 0);

	assert_int_equal(json_object_array_length(lines), 1);
	assert_null(json_object_object_get(end, "sockets"));
	assert_string_equal(get(end, "sockets_reason"), "it has not been attached yet");
	json_object_put(lines);
}

static void test_addresses(void **state)
{
	struct socket_key key = {
		.port = 80, .family = AF_INET, .way = SOCKET_ACCEPTED, .address = { 10, 0, 0, 5 }
	};
	char text[SESSION_SOCKETS_ADDRESS_BYTES];

	session_sockets_address(&key, text);
	assert_string_equal(text, "10.0.0.5 at port 80");
	key.way = SOCKET_OPENED;
	session_sockets_address(&key, text);
	assert_string_equal(text, "10.0.0.5:80");
	key.family = AF_INET6;
	memset(key.address, 0, sizeof(key.address));
	session_sockets_address(&key, text);
	assert_string_equal(text, "[::]:80");
}

UNIT_TESTS(session_sockets)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_missing, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
