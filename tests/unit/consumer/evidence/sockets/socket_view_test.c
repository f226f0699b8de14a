/* SPDX-License-Identifier: BSD-2-Clause */
/* What looks find of sockets, summed up by peer. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <string.h>
#include <sys/socket.h>

#include "consumer/evidence/sockets/socket_view.h"

static struct socket_record connection(uint8_t last, uint16_t port)
{
	return (struct socket_record){ .tgid = 7,
				       .family = AF_INET,
				       .way = SOCKET_OPENED,
				       .state = 1,
				       .local_port = 40000,
				       .peer_port = port,
				       .peer = { 10, 0, 0, last },
				       .rtt_least_us = UINT32_MAX,
				       .comm = "api" };
}

static void add_times(struct socket_view *v, const struct socket_record *r, int times)
{
	for (int i = 0; i < times; i++)
		socket_view_add(v, r);
}

/* First, last and most are of looks; sockets of one peer add up within one. */
static void test_looks(void **state)
{
	struct socket_record r = connection(5, 5432);
	struct socket_view v;

	assert_int_equal(socket_view_init(&v), 0);
	r.unacked = 10;
	add_times(&v, &r, 2);
	socket_view_end_look(&v, false);
	r.unacked = 100;
	add_times(&v, &r, 3);
	socket_view_end_look(&v, false);
	r.unacked = 1;
	add_times(&v, &r, 1);
	socket_view_end_look(&v, false);
	assert_int_equal(v.count, 1);
	assert_int_equal(v.looks, 3);
	assert_int_equal(v.sockets_listed, 6);
	assert_int_equal(v.peers[0].first[SOCKET_LEVEL_CONNECTIONS], 2);
	assert_int_equal(v.peers[0].most[SOCKET_LEVEL_CONNECTIONS], 3);
	assert_int_equal(v.peers[0].last[SOCKET_LEVEL_CONNECTIONS], 1);
	assert_int_equal(v.peers[0].first[SOCKET_LEVEL_UNACKED], 20);
	assert_int_equal(v.peers[0].most[SOCKET_LEVEL_UNACKED], 300);
	assert_int_equal(v.peers[0].states[1], 1);
	assert_int_equal(v.peers[0].worst.waits, 100);
	socket_view_done(&v);
}

/* A cut look proves nothing about levels, and its missing sockets against the last are lost. */
static void test_cut_look(void **state)
{
	struct socket_record r = connection(5, 5432);
	struct socket_view v;

	assert_int_equal(socket_view_init(&v), 0);
	add_times(&v, &r, 5);
	socket_view_end_look(&v, false);
	add_times(&v, &r, 2);
	socket_view_end_look(&v, true);
	assert_int_equal(v.looks, 1);
	assert_int_equal(v.cut, 3);
	assert_int_equal(v.peers[0].last[SOCKET_LEVEL_CONNECTIONS], 5);
	socket_view_end_look(&v, true);
	assert_int_equal(v.cut, 8);
	socket_view_done(&v);
}

/* A sign lasts for SOCKET_LIMIT_LATE_MS, or needs no time. */
static void test_signs(void **state)
{
	struct socket_record r = connection(5, 5432);
	struct socket_view v;

	assert_int_equal(socket_view_init(&v), 0);
	r.unread = r.unsent = r.unacked = 4096;
	r.flags = SOCKET_PEER_FULL;
	r.in_ms = r.out_ms = 99;
	socket_view_add(&v, &r);
	socket_view_end_look(&v, false);
	for (int i = 0; i < SOCKET_SIGNS_; i++)
		assert_int_equal(v.peers[0].signs[i], 0);
	r.in_ms = r.out_ms = 100;
	add_times(&v, &r, 2);
	socket_view_end_look(&v, false);
	assert_int_equal(v.peers[0].signs[SOCKET_SIGN_UNREAD], 1);
	assert_int_equal(v.peers[0].signs[SOCKET_SIGN_STUCK], 1);
	assert_int_equal(v.peers[0].signs[SOCKET_SIGN_UNACKED], 1);
	assert_int_equal(v.peers[0].stuck_ms, 100);
	r.flags = SOCKET_OWN_FULL;
	r.in_ms = 0;
	socket_view_add(&v, &r);
	socket_view_end_look(&v, false);
	assert_int_equal(v.peers[0].signs[SOCKET_SIGN_UNREAD], 2);
	assert_int_equal(v.peers[0].signs[SOCKET_SIGN_STUCK], 1);
	socket_view_done(&v);
}

/* The queue of a listener is full when it is longer than was asked for. */
static void test_listener(void **state)
{
	struct socket_record r = { .way = SOCKET_LISTENS,
				   .family = AF_INET,
				   .state = 10,
				   .local_port = 80,
				   .queue = 8,
				   .queue_max = 8,
				   .tgid = 3 };
	struct socket_view v;

	assert_int_equal(socket_view_init(&v), 0);
	socket_view_add(&v, &r);
	socket_view_end_look(&v, false);
	assert_int_equal(v.peers[0].signs[SOCKET_SIGN_QUEUE_FULL], 0);
	r.queue = 9;
	socket_view_add(&v, &r);
	socket_view_end_look(&v, false);
	assert_int_equal(v.peers[0].signs[SOCKET_SIGN_QUEUE_FULL], 1);
	assert_int_equal(v.peers[0].queue_max, 8);
	assert_int_equal(v.peers[0].key.port, 80);
	assert_int_equal(v.peers[0].worst.waits, 9);
	socket_view_done(&v);
}

/* Peers without room are one sum; nothing is missing from it. */
static void test_many_peers(void **state)
{
	struct socket_view v;

	assert_int_equal(socket_view_init(&v), 0);
	for (int i = 0; i < SOCKET_VIEW_PEERS + 5; i++) {
		struct socket_record r = connection(5, (uint16_t)(i + 1));

		socket_view_add(&v, &r);
	}
	socket_view_end_look(&v, false);
	assert_int_equal(v.count, SOCKET_VIEW_PEERS);
	assert_int_equal(v.rest.last[SOCKET_LEVEL_CONNECTIONS], 5);
	socket_view_done(&v);
}

UNIT_TESTS(socket_view)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks),	   cmocka_unit_test(test_cut_look),
		cmocka_unit_test(test_signs),	   cmocka_unit_test(test_listener),
		cmocka_unit_test(test_many_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
