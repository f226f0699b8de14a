/* SPDX-License-Identifier: BSD-2-Clause */
/* The slow side, by sockets. */
#include "consumer/answer/find_sockets.h"
#include "consumer/evidence/evidence_kinds.h"

#include <netinet/in.h>
#include <string.h>

#include "consumer/evidence/sockets/socket_peers.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/time_histogram.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static uint64_t row_ns = 4 * NSEC_PER_SEC, running_ns;
static bool row_idle;

/* One thread waited row_ns for 10.0.0.5:5432; the session lasted 10 s. Returns the findings. */
static struct findings found(const struct socket_peers *peers, bool waits)
{
	static const struct look_on on = { .protocol = IPPROTO_TCP,
					   .family = AF_INET,
					   .local_port = 40000,
					   .peer_port = 5432,
					   .peer = { 10, 0, 0, 5 } };
	struct session_result *session = report_testing_new_session("/a");
	struct signal *signal = signals_new(SIGNAL_SOCKET, &host, &target);
	static struct session_wait row = { .state = ACCOUNT_SOCKET, .on = &on };
	static struct session_digest summary;
	struct findings_search s = { .session = session, .summary = &summary };

	assert_non_null(signal);
	signal->evidence = (void *)peers;
	session->signals[SIGNAL_SOCKET] = signal;
	memset(&summary, 0, sizeof(summary));
	row.weight_ns = row_ns;
	row.idle = row_idle;
	s.found.time_ns[FINDINGS_RUNNING] = running_ns;
	if (waits) {
		summary.waits.count = 1;
		summary.waits.rows = &row;
		s.part_ns[ACCOUNT_SOCKET] = 4 * NSEC_PER_SEC;
		s.found.time_ns[FINDINGS_WAITING] = 4 * NSEC_PER_SEC;
	}
	s.found.time_ns[FINDINGS_SESSION] = 10 * NSEC_PER_SEC;
	if (waits)
		find_sockets_peer(&s);
	find_sockets_clients(&s);
	session_result_free(session);
	return s.found;
}

static struct socket_peer peer_of(enum socket_way way, uint16_t port)
{
	return (struct socket_peer){ .key = { .port = port,
					      .family = AF_INET,
					      .way = (uint8_t)way,
					      .address = { 10, 0, 0, 5 } } };
}

static void has(const struct finding *f, const char *what)
{
	if (!strstr(f->says, what))
		fail_msg("no %s in: %s", what, f->says);
}

static void has_not(const struct finding *f, const char *what)
{
	if (strstr(f->says, what))
		fail_msg("%s in: %s", what, f->says);
}

/* Long round trips, segments that are sent again or no acknowledgement: the way is slow. */
static void test_slow_peer(void **state)
{
	struct socket_peer p = peer_of(SOCKET_OPENED, 5432);
	struct socket_peers peers = { .items = &p, .count = 1, .looks = 8 };
	struct findings f = found(&peers, true);

	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_PEER);
	/* No round trip was measured: it is not known whether the way is slow. */
	has(&f.items[0], "; no round trip to 10.0.0.5:5432 was measured");
	has_not(&f.items[0], "the way to it");
	has_not(&f.items[0], "segments");
	p.srtt[time_histogram_element(NSEC_PER_MSEC)] = 3;
	p.counts[SOCKET_SEGMENTS] = 20;
	f = found(&peers, true);
	has(&f.items[0], ", 0 of 20 segments were sent again: the way to it is not slow");
	p.counts[SOCKET_SEGMENTS] = 100;
	p.counts[SOCKET_RETRANSMITS] = 5;
	f = found(&peers, true);
	assert_int_equal(f.items[0].cause, FINDING_SLOW_PEER);
	assert_int_equal(f.items[0].ns, 4 * NSEC_PER_SEC);
	has(&f.items[0], "10.0.0.5:5432");
	has(&f.items[0], "5 of 100 segments were sent again");
	assert_string_equal(f.items[0].evidence.value, "10.0.0.5");
	/* Fewer are no loss to speak of, nor is a small share of many. */
	p.counts[SOCKET_RETRANSMITS] = 4;
	assert_int_equal(found(&peers, true).items[0].cause, FINDING_PEER);
	p.counts[SOCKET_RETRANSMITS] = 19;
	p.counts[SOCKET_SEGMENTS] = 1000;
	assert_int_equal(found(&peers, true).items[0].cause, FINDING_PEER);
	memset(p.srtt, 0, sizeof(p.srtt));
	p.srtt[time_histogram_element(120 * NSEC_PER_MSEC)] = 3;
	assert_int_equal(found(&peers, true).items[0].cause, FINDING_SLOW_PEER);
	memset(p.srtt, 0, sizeof(p.srtt));
	p.srtt[time_histogram_element(NSEC_PER_MSEC)] = 3;
	p.signs[SOCKET_SIGN_UNACKED] = 3;
	assert_int_equal(found(&peers, true).items[0].cause, FINDING_PEER);
	p.signs[SOCKET_SIGN_UNACKED] = 4;
	assert_int_equal(found(&peers, true).items[0].cause, FINDING_SLOW_PEER);
}

/* A peer that drops connection requests: nothing has come back, whatever the ratio would be. */
static void test_silent_peer(void **state)
{
	struct socket_peer p = peer_of(SOCKET_OPENED, 5432);
	struct socket_peers peers = { .items = &p, .count = 1, .looks = 8 };
	struct findings f;

	p.counts[SOCKET_RETRANSMITS] = 4;
	f = found(&peers, true);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_SLOW_PEER);
	has(&f.items[0],
	    "; no round trip to 10.0.0.5:5432 was measured, 4 segments were sent again");
	has_not(&f.items[0], "of 0");
	has_not(&f.items[0], "not slow");
}

/* Of accepted connections the key has the service's own port: the client's is in the worst one. */
static void test_end_that_is_meant(void **state)
{
	struct socket_peer p = peer_of(SOCKET_ACCEPTED, 80);
	struct socket_peers peers = { .items = &p, .count = 1, .looks = 8 };
	struct findings f;

	p.signs[SOCKET_SIGN_STUCK] = 8;
	p.most[SOCKET_LEVEL_UNSENT] = 8;
	f = found(&peers, false);
	has(&f.items[0], "clients of port 80 at 10.0.0.5 do not read the data sent there: up to 8 "
			 "bytes waited");
	p.worst = (struct socket_worst){ .tgid = 77, .peer_port = 18999, .comm = "api" };
	f = found(&peers, false);
	has(&f.items[0], "10.0.0.5:18999, a client of port 80, does not read the data sent there");
	has(&f.items[0], "; the socket is of api, process 77");
	p.signs[SOCKET_SIGN_STUCK] = 0;
	p.signs[SOCKET_SIGN_UNREAD] = 8;
	f = found(&peers, false);
	has(&f.items[0], "data from 10.0.0.5:18999, a client of port 80, were not read");
}

/* The finding has the wait of a server that does not read, unless it runs or is idle. */
static void test_reader_waits(void **state)
{
	struct socket_peer p = peer_of(SOCKET_ACCEPTED, 80);
	struct socket_peers peers = { .items = &p, .count = 1, .looks = 8 };
	struct findings f;

	p.signs[SOCKET_SIGN_UNREAD] = 8;
	p.most[SOCKET_LEVEL_UNREAD] = 8;
	row_ns = 8 * NSEC_PER_SEC;
	f = found(&peers, true);
	assert_int_equal(f.items[1].cause, FINDING_SLOW_READER);
	has(&f.items[1], "; meanwhile 0 of its threads waited 8.0 s in ");
	running_ns = 3 * NSEC_PER_SEC;
	f = found(&peers, true);
	has_not(&f.items[1], "meanwhile");
	running_ns = 0;
	row_idle = true;
	f = found(&peers, true);
	has_not(&f.items[1], "meanwhile");
	row_idle = false;
	row_ns = 4 * NSEC_PER_SEC;
}

/* Clients of this cgroup wait: it lasts for a part of the session. */
static void test_clients(void **state)
{
	struct socket_peer items[3] = { peer_of(SOCKET_LISTENS, 80), peer_of(SOCKET_ACCEPTED, 80),
					peer_of(SOCKET_OPENED, 9) };
	struct socket_peers peers = { .items = items, .count = 3, .looks = 10 };
	struct findings f = found(&peers, false);

	assert_int_equal(f.count, 0);
	items[0].signs[SOCKET_SIGN_QUEUE_FULL] = 8;
	items[0].most[SOCKET_LEVEL_QUEUE] = 129;
	items[0].queue_max = 128;
	items[0].counts[SOCKET_DROPS] = 40;
	items[1].signs[SOCKET_SIGN_UNREAD] = 10;
	items[1].most[SOCKET_LEVEL_UNREAD] = 2048;
	items[1].most[SOCKET_LEVEL_CONNECTIONS] = 1;
	items[1].worst = (struct socket_worst){ .tgid = 77, .comm = "api" };
	items[2].signs[SOCKET_SIGN_STUCK] = 5;
	f = found(&peers, false);
	assert_int_equal(f.count, 3);
	assert_int_equal(f.items[0].cause, FINDING_ACCEPT_QUEUE);
	assert_int_equal(f.items[0].ns, 8 * NSEC_PER_SEC);
	has(&f.items[0],
	    "full in 8 of 10 snapshots, with 129 connections, for a backlog of 128; 40");
	assert_int_equal(f.items[1].cause, FINDING_SLOW_READER);
	has(&f.items[1], "up to 2.0 KiB in 1 connection,");
	has(&f.items[1], "api, process 77");
	assert_int_equal(f.items[2].cause, FINDING_SLOW_RECEIVER);
	/* A queue that no look found full has dropped some all the same. */
	items[0].signs[SOCKET_SIGN_QUEUE_FULL] = 0;
	assert_int_equal(found(&peers, false).items[0].cause, FINDING_ACCEPT_QUEUE);
}

/* A queue that is not full, but has connections in each snapshot, which no thread accepts. */
static void test_queued(void **state)
{
	struct socket_peer item = peer_of(SOCKET_LISTENS, 80);
	struct socket_peers peers = { .items = &item, .count = 1, .looks = 7 };
	struct findings f;

	item.most[SOCKET_LEVEL_QUEUE] = 6;
	item.signs[SOCKET_SIGN_QUEUED] = 6;
	assert_int_equal(found(&peers, false).count, 0);
	item.signs[SOCKET_SIGN_QUEUED] = 7;
	f = found(&peers, false);
	assert_int_equal(f.items[0].cause, FINDING_ACCEPT_QUEUE);
	assert_int_equal(f.items[0].ns, 10 * NSEC_PER_SEC);
	has(&f.items[0], "6 connections waited to be accepted in the listen queue of 10.0.0.5:80, "
			 "which became no shorter in 7 snapshots");
	has_not(&f.items[0], "full");
	/* Too few snapshots prove nothing. */
	peers.looks = 2;
	item.signs[SOCKET_SIGN_QUEUED] = 2;
	assert_int_equal(found(&peers, false).count, 0);
}

/* Without the signal a wait for a socket is still one for a peer. */
static void test_unknown(void **state)
{
	struct findings f = found(NULL, true);

	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_PEER);
	assert_null(strstr(f.items[0].says, "round trips"));
}

UNIT_TESTS(find_sockets)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_peer),	  cmocka_unit_test(test_silent_peer),
		cmocka_unit_test(test_end_that_is_meant), cmocka_unit_test(test_reader_waits),
		cmocka_unit_test(test_clients),		  cmocka_unit_test(test_queued),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
