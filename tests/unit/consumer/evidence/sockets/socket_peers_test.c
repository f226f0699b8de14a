/* SPDX-License-Identifier: BSD-2-Clause */
/* The counts of connections, as the difference of two readings, and the peers with a line. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "consumer/evidence/sockets/socket_peers.h"

#define OWN 3

static bool is_own(const void *context, uint32_t slot)
{
	return slot == OWN;
}

static const struct slot_owner owner = { is_own, NULL };

static struct socket_key key_of(uint32_t slot, uint16_t port)
{
	return (struct socket_key){ .slot = slot,
				    .port = port,
				    .family = AF_INET,
				    .way = SOCKET_OPENED,
				    .address = { 127, 0, 0, 1 } };
}

static struct socket_view new_view(void)
{
	struct socket_view v;

	assert_int_equal(socket_view_init(&v), 0);
	return v;
}

/* The counts of others, those of before and those without a way are not the session's. */
static void test_difference(void **state)
{
	struct socket_key keys[4] = { key_of(OWN, 1), key_of(9, 2), key_of(OWN, 3),
				      key_of(OWN, 4) };
	struct socket_sums old[2] = {}, sums[4] = {};
	struct socket_reading before = { .keys = keys, .sums = old, .count = 2 };
	struct socket_reading now = { .keys = keys, .sums = sums, .count = 4 };
	struct socket_view v = new_view();
	struct socket_peers peers;

	old[0].counts[SOCKET_BEGUN] = 5;
	old[0].life[10] = 1;
	sums[0].counts[SOCKET_BEGUN] = 8;
	sums[0].life[10] = 4;
	sums[1].counts[SOCKET_BEGUN] = 100;
	sums[2].counts[SOCKET_REFUSED] = 2;
	keys[3].way = SOCKET_WAYS_;
	sums[3].counts[SOCKET_BEGUN] = 100;
	before.losses.rest[SOCKET_ENDED] = 1;
	now.losses.rest[SOCKET_ENDED] = 4;
	now.losses.lost[SOCKET_LOST_PEERS] = 6;
	now.losses.lost[SOCKET_LOST_FILES] = 2;
	v.sockets_listed = 10;
	v.cut = 1;
	assert_int_equal(socket_peers_make(&v, &before, &now, &owner, &peers), 0);
	assert_int_equal(peers.count, 2);
	/* Failures come first. */
	assert_int_equal(peers.items[0].key.port, 3);
	assert_int_equal(peers.items[0].counts[SOCKET_REFUSED], 2);
	assert_int_equal(peers.items[1].counts[SOCKET_BEGUN], 3);
	assert_int_equal(peers.items[1].life[10], 3);
	assert_int_equal(peers.all.counts[SOCKET_BEGUN], 3);
	assert_int_equal(peers.all.counts[SOCKET_ENDED], 3);
	assert_int_equal(peers.rest.counts[SOCKET_ENDED], 3);
	assert_int_equal(peers.others, 1);
	assert_int_equal(peers.unlisted, 6);
	assert_int_equal(peers.ledger.emitted, 10);
	assert_int_equal(peers.ledger.lost[DROP_SOCKETS_FULL], 2);
	assert_int_equal(peers.ledger.lost[DROP_LOOK_CUT], 1);
	assert_int_equal(peers.ledger.attempted, 13);
	assert_ptr_equal(socket_peers_find(&peers, SOCKET_OPENED, AF_INET, keys[2].address, 3),
			 &peers.items[0]);
	assert_null(socket_peers_find(&peers, SOCKET_OPENED, AF_INET, keys[2].address, 2));
	assert_null(socket_peers_find(&peers, SOCKET_ACCEPTED, AF_INET, keys[2].address, 3));
	socket_peers_done(&peers);
	socket_view_done(&v);
}

/* For one process nothing is counted, and counts without room are reported all the same. */
static void test_looks_alone(void **state)
{
	struct socket_key key = key_of(OWN, 1);
	struct socket_sums sums = { .counts = { [SOCKET_BEGUN] = 4 } };
	struct socket_reading before = {}, now = { .keys = &key, .sums = &sums, .count = 1 };
	struct socket_view v = new_view();
	struct socket_peers peers;

	now.losses.lost[SOCKET_LOST_SOCKETS] = 3;
	assert_int_equal(socket_peers_make(&v, &before, &now, NULL, &peers), 0);
	assert_int_equal(peers.count, 0);
	assert_false(peers.counted);
	assert_int_equal(peers.ledger.lost[DROP_SOCKETS_FULL], 3);
	socket_peers_done(&peers);
	socket_view_done(&v);
}

/* Of many peers those with waiting data have a line; the rest is one sum. */
static void test_choice(void **state)
{
	struct socket_reading none = {};
	struct socket_view v = new_view();
	struct socket_peers peers;

	for (uint16_t i = 0; i < SOCKET_PEERS_TOLD + 6; i++) {
		struct socket_key key = key_of(OWN, (uint16_t)(i + 1));
		struct socket_peer *p = socket_view_peer(&v, &key);

		p->most[SOCKET_LEVEL_CONNECTIONS] = 1;
		p->counts[SOCKET_BYTES_IN] = 100;
	}
	v.peers[SOCKET_PEERS_TOLD + 2].signs[SOCKET_SIGN_UNREAD] = 1;
	assert_int_equal(socket_peers_make(&v, &none, &none, &owner, &peers), 0);
	assert_int_equal(peers.count, SOCKET_PEERS_TOLD);
	assert_int_equal(peers.items[0].key.port, SOCKET_PEERS_TOLD + 3);
	assert_int_equal(peers.others, 6);
	assert_int_equal(peers.rest.counts[SOCKET_BYTES_IN], 600);
	assert_int_equal(peers.all.most[SOCKET_LEVEL_CONNECTIONS], SOCKET_PEERS_TOLD + 6);
	socket_peers_done(&peers);
	socket_view_done(&v);
}

UNIT_TESTS(socket_peers)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_difference),
		cmocka_unit_test(test_looks_alone),
		cmocka_unit_test(test_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
