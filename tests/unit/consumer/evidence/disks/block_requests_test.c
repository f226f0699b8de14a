/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests to disks: differences of readings, by disk and operation, and the other users of the
 * disk.
 */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/disks/block_requests.h"

#define OWN	  3
#define VDA	  (254u << 20)
#define VDB	  (254u << 20 | 16)
#define MSEC	  1000000ull
#define ROOM	  64
#define NOBODY_ID 0

/* A reading under construction. */
struct made {
	struct block_reading read;
	struct block_key keys[ROOM];
	struct block_sums sums[ROOM];
	struct block_request open[ROOM];
};

static bool is_own(const void *context, uint32_t slot)
{
	return slot == OWN;
}

static const struct slot_owner owner = { is_own, NULL };

/* The cgroups from 1000 on are in the directory of one user. */
static size_t group_it(void *context, uint64_t cgroup_id)
{
	return cgroup_id >= 1000;
}

static void name_it(void *context, struct neighbour_row *row)
{
	char text[32];

	if (row->group && row->cgroups > 1)
		row->cgroup_id = 77;
	row->uid = row->group ? 61234 : 0;
	snprintf(text, sizeof(text), "/c%llu", (unsigned long long)row->cgroup_id);
	row->path = row->cgroup_id == 99 ? NULL : strdup(text);
}

static const struct neighbour_names names = { .group = group_it, .name = name_it };

/* Adds `requests` of 4 KiB that waited 1 ms for their disk and took it 2 ms each. */
static void add(struct made *m, uint64_t cgroup_id, uint32_t device, uint8_t op, uint64_t requests)
{
	uint32_t i = m->read.n_sums++;

	m->read.keys = m->keys;
	m->read.sums = m->sums;
	m->keys[i] = (struct block_key){ .cgroup_id = cgroup_id,
					 .slot = cgroup_id == 1 ? OWN : NO_SLOT,
					 .device = device,
					 .op = op };
	m->sums[i] = (struct block_sums){ .requests = requests,
					  .bytes = requests * 4096,
					  .queue_ns = requests * MSEC,
					  .service_ns = requests * 2 * MSEC,
					  .longest_ns = 4 * MSEC };
	m->sums[i].queue[20] = (uint32_t)requests;
	m->sums[i].service[22] = (uint32_t)requests;
}

static void make(const struct made *before, const struct made *now, struct block_requests *ret)
{
	assert_int_equal(block_requests_make(&before->read, &now->read, &owner, ret), 0);
	block_requests_close(ret, &names);
}

static void test_difference(void **state)
{
	struct made before = {}, now = {};
	struct block_requests all;
	const struct block_disk *d;

	add(&before, 1, VDA, BLOCK_WRITE, 10);
	add(&now, 1, VDA, BLOCK_READ, 1);
	add(&now, 1, VDA, BLOCK_WRITE, 25);
	now.sums[1].longest_ns = 9 * MSEC;
	now.keys[1].flags = before.keys[0].flags = BLOCK_WRITEBACK;
	make(&before, &now, &all);
	assert_int_equal(all.count, 2);
	d = &all.items[0];
	assert_int_equal(d->op, BLOCK_WRITE);
	assert_int_equal(d->device, VDA);
	assert_int_equal(d->all.requests, 15);
	assert_int_equal(d->all.bytes, 15 * 4096);
	assert_int_equal(d->all.queue_ns, 15 * MSEC);
	assert_int_equal(d->all.service_ns, 30 * MSEC);
	assert_int_equal(d->all.longest_ns, 9 * MSEC);
	assert_int_equal(d->all.queue[20], 15);
	assert_int_equal(d->all.service[22], 15);
	assert_int_equal(d->sizes[0].requests, 15);
	assert_int_equal(d->written_back, 15);
	assert_int_equal(d->everybody_requests, 15);
	assert_int_equal(all.ledger.attempted, 16);
	assert_int_equal(all.ledger.emitted, 16);
	assert_int_equal(block_requests_sum(&all).requests, 16);
	block_requests_done(&all);
}

/* Others count where they used a disk of the session, those that are not known only in its sums. */
static void test_neighbours(void **state)
{
	struct made before = {}, now = {};
	struct block_requests all;

	add(&now, 1, VDA, BLOCK_WRITE, 10);
	add(&now, 5, VDA, BLOCK_WRITE, 20);
	add(&now, 5, VDA, BLOCK_READ, 1);
	add(&now, 99, VDA, BLOCK_READ, 30);
	add(&now, 6, VDB, BLOCK_WRITE, 40);
	add(&now, NOBODY_ID, VDA, BLOCK_WRITE, 50);
	make(&before, &now, &all);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.items[0].everybody_requests, 80);
	assert_int_equal(all.n_neighbours, 2);
	assert_int_equal(all.neighbours[0].row.cgroup_id, 99);
	assert_null(all.neighbours[0].row.path);
	assert_int_equal(all.neighbours[0].service_ns, 60 * MSEC);
	assert_int_equal(all.neighbours[0].disk_service_ns, 2 * 111 * MSEC);
	assert_int_equal(all.neighbours[1].requests, 21);
	assert_string_equal(all.neighbours[1].row.path, "/c5");
	block_requests_done(&all);
}

/* Pairs without a line are in a sum. */
static void test_rest(void **state)
{
	struct made before = {}, now = {};
	struct block_requests all;

	for (uint32_t i = 0; i < BLOCK_DISKS + 2; i++)
		add(&now, 1, VDA + i, BLOCK_READ, 10 + i);
	for (uint32_t i = 0; i < BLOCK_NEIGHBOURS + 3; i++)
		add(&now, 10 + i, VDA, BLOCK_READ, 1);
	make(&before, &now, &all);
	assert_int_equal(all.count, BLOCK_DISKS);
	assert_int_equal(all.rest, 2);
	assert_int_equal(all.rest_times.requests, 10 + 11);
	assert_int_equal(all.n_neighbours, BLOCK_NEIGHBOURS);
	assert_int_equal(all.more_neighbours, 3);
	assert_int_equal(all.more.requests, 3);
	assert_int_equal(block_requests_sum(&all).requests, all.ledger.emitted);
	block_requests_done(&all);
}

/*
 * The cgroups of one user are one row for each disk, before a cgroup with more than each of them.
 */
static void test_one_owner(void **state)
{
	struct made before = {}, now = {};
	struct block_requests all;

	add(&now, 1, VDA, BLOCK_READ, 1);
	add(&now, 1, VDB, BLOCK_READ, 1);
	for (uint64_t i = 0; i < 40; i++)
		add(&now, 1000 + i, i % 10 ? VDA : VDB, BLOCK_READ, 1);
	add(&now, 7, VDA, BLOCK_READ, 20);
	make(&before, &now, &all);
	assert_int_equal(all.n_neighbours, 3);
	assert_string_equal(all.neighbours[0].row.path, "/c77");
	assert_int_equal(all.neighbours[0].requests, 36);
	assert_int_equal(all.neighbours[0].row.uid, 61234);
	assert_int_equal(all.neighbours[0].row.cgroups, 36);
	assert_int_equal(all.neighbours[0].row.cgroup_id, 77);
	assert_string_equal(all.neighbours[1].row.path, "/c7");
	assert_int_equal(all.neighbours[2].device, VDB);
	assert_int_equal(all.neighbours[2].row.cgroups, 4);
	assert_int_equal(all.more_neighbours, 0);
	block_requests_done(&all);
}

static void test_open_and_lost(void **state)
{
	struct made before = {}, now = {};
	struct block_requests all;

	now.read.open = now.open;
	now.read.n_open = 3;
	now.read.at_ns = 100 * MSEC;
	now.open[0] = (struct block_request){ .slot = OWN, .since_ns = 40 * MSEC, .device = VDA };
	now.open[1] = now.open[0];
	now.open[1].since_ns = 70 * MSEC;
	now.open[1].issued_ns = 80 * MSEC;
	now.open[2] = (struct block_request){ .slot = NO_SLOT, .device = VDA };
	before.read.losses = (struct slot_block){ 1, 2 };
	now.read.losses = (struct slot_block){ 5, 9, 3, 1 };
	make(&before, &now, &all);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.items[0].open, 2);
	assert_int_equal(all.items[0].open_issued, 1);
	assert_int_equal(all.items[0].open_ns, 60 * MSEC);
	assert_int_equal(all.ledger.emitted, 2);
	assert_int_equal(all.ledger.lost[DROP_REQUESTS_FULL], 7);
	assert_int_equal(all.ledger.lost[DROP_NO_MEMORY], 3);
	assert_int_equal(all.ledger.lost[DROP_END_UNSEEN], 1);
	assert_int_equal(all.ledger.attempted, 13);
	block_requests_done(&all);
}

/* A writer of the tables cannot make it read beyond its own. */
static void test_insane(void **state)
{
	struct made before = {}, now = {};
	struct block_requests all;

	add(&now, 1, VDA, BLOCK_OPS_, 10);
	add(&now, 1, VDA, 255, 10);
	add(&now, 1, VDA, BLOCK_READ, 10);
	now.keys[2].size = BLOCK_SIZES;
	now.read.open = now.open;
	now.read.n_open = 1;
	now.open[0] = (struct block_request){ .slot = OWN, .op = BLOCK_OPS_ };
	make(&before, &now, &all);
	assert_int_equal(all.count, 0);
	block_requests_done(&all);
}

static void test_words(void **state)
{
	assert_string_equal(block_requests_op_name(BLOCK_DISCARD), "discard");
	assert_int_equal(block_requests_size_bytes(0), 4096);
	assert_int_equal(block_requests_size_bytes(4), 1u << 20);
	assert_int_equal(block_requests_size_bytes(5), 0);
}

UNIT_TESTS(block_requests)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_difference), cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_rest),	   cmocka_unit_test(test_open_and_lost),
		cmocka_unit_test(test_one_owner),  cmocka_unit_test(test_insane),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
