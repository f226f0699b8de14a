/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "consumer/sampling/wait_kind.h"
#include "consumer/signals/timeline.h"
#include "shared/tools/macro.h"

#define START_NS (1000 * NSEC_PER_SEC)
#define MS(ms)	 (START_NS + (int64_t)(ms) * (int64_t)NSEC_PER_MSEC)

static struct stack_sample sample_of(uint32_t tgid, const char *comm)
{
	struct stack_sample h = { .tgid = tgid, .start_ns = 5 };

	snprintf(h.comm, sizeof(h.comm), "%s", comm);
	return h;
}

static void is_ms(const struct timeline_pool *pool, enum account_part part, uint32_t slot,
		  uint64_t ms)
{
	assert_non_null(pool->ns[part]);
	assert_int_equal(pool->ns[part][slot], ms * NSEC_PER_MSEC);
}

/* The narrowest width with which the whole session has room. */
static void test_widths(void **state)
{
	static const struct {
		uint32_t pre_ms, during_ms, slot_ms, before, slots;
	} rows[] = {
		{ 2000, 1000, 50, 40, 61 },	{ 5000, 3000, 100, 50, 81 },
		{ 5001, 3000, 100, 51, 82 },	{ 10000, 10000, 200, 50, 101 },
		{ 30000, 60000, 1000, 30, 91 }, { 0, 100, 50, 0, 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct timeline *t = timeline_new(START_NS, rows[i].pre_ms, rows[i].during_ms);

		assert_int_equal(t->slot_ns, rows[i].slot_ms * NSEC_PER_MSEC);
		assert_int_equal(t->before, rows[i].before);
		assert_int_equal(t->slots, rows[i].slots);
		assert_true(t->slots <= TIMELINE_SLOTS + 1);
		assert_int_equal(t->from_ns, START_NS - t->before * t->slot_ns);
		timeline_free(t);
	}
}

/* A time is spread over the slots that it lies in; what lies outside is not there. */
static void test_spread(void **state)
{
	struct timeline *t = timeline_new(START_NS, 5000, 3000);
	struct stack_sample h = sample_of(7, "worker-3"), other = sample_of(7, "worker-12");
	struct timeline_pool *pool = timeline_pool(t, &h);

	assert_ptr_equal(timeline_pool(t, &other), pool);
	assert_string_equal(pool->name, "worker-");
	timeline_add(t, pool, ACCOUNT_RUNNING, MS(-10), MS(5));
	timeline_add(t, pool, ACCOUNT_RUNNING, MS(80), MS(330));
	is_ms(pool, ACCOUNT_RUNNING, 49, 10);
	is_ms(pool, ACCOUNT_RUNNING, 50, 25);
	is_ms(pool, ACCOUNT_RUNNING, 51, 100);
	is_ms(pool, ACCOUNT_RUNNING, 53, 30);
	is_ms(pool, ACCOUNT_RUNNING, 54, 0);
	timeline_add(t, pool, ACCOUNT_LOCK, MS(-9000), MS(9000));
	is_ms(pool, ACCOUNT_LOCK, 0, 100);
	is_ms(pool, ACCOUNT_LOCK, 80, 100);
	timeline_add(t, pool, ACCOUNT_IO, MS(5), MS(5));
	timeline_add(t, pool, ACCOUNT_IO, MS(9000), MS(9001));
	timeline_add(t, pool, ACCOUNT_IO, MS(-7000), MS(-6000));
	assert_null(pool->ns[ACCOUNT_IO]);
	assert_int_equal(t->crowded + t->left_out, 0);
	timeline_free(t);
}

static void test_pools(void **state)
{
	struct timeline *t = timeline_new(START_NS, 0, 1000);
	struct stack_sample a = sample_of(7, "a"), b = sample_of(8, "a"), c = sample_of(7, "a1"),
			    d = sample_of(7, "a");

	d.start_ns = 6; /* another process with the same number */
	assert_ptr_not_equal(timeline_pool(t, &a), timeline_pool(t, &b));
	assert_ptr_equal(timeline_pool(t, &a), timeline_pool(t, &c));
	assert_ptr_not_equal(timeline_pool(t, &a), timeline_pool(t, &d));
	assert_int_equal(t->count, 3);
	timeline_free(t);
}

/* More pools than there is room for: the rest has their time, and it is counted how often. */
static void test_bounds(void **state)
{
	struct timeline *t = timeline_new(START_NS, 0, 1000);
	struct stack_sample h = sample_of(1, "w");
	uint64_t in_rest = 0;

	for (uint32_t i = 0; i < TIMELINE_POOLS + 10; i++) {
		h.tgid = i + 1;
		timeline_add(t, timeline_pool(t, &h), ACCOUNT_RUNNING, MS(0), MS(1));
	}
	assert_int_equal(t->count, TIMELINE_POOLS);
	assert_int_equal(t->rows, TIMELINE_ROWS);
	in_rest = t->rest.ns[ACCOUNT_RUNNING][0] / NSEC_PER_MSEC;
	assert_int_equal(in_rest, TIMELINE_POOLS + 10 - TIMELINE_ROWS);
	assert_int_equal(t->crowded, in_rest);
	assert_int_equal(t->left_out, 0);
	timeline_free(t);
}

static void test_looks(void **state)
{
	struct timeline *t = timeline_new(START_NS, 1000, 1000);

	timeline_look(t, MS(-1000));
	timeline_look(t, MS(0));
	timeline_look(t, MS(49));
	timeline_look(t, MS(-1001));
	timeline_look(t, MS(1050));
	assert_int_equal(t->looks[0], 1);
	assert_int_equal(t->looks[20], 2);
	assert_int_equal(t->looks[40], 0);
	timeline_free(t);
}

/* Without memory for one, nothing happens. */
static void test_none(void **state)
{
	struct stack_sample h = sample_of(7, "a");

	assert_null(timeline_pool(NULL, &h));
	timeline_add(NULL, NULL, ACCOUNT_RUNNING, 1, 2);
	timeline_look(NULL, 1);
	timeline_free(NULL);
}

static void test_parts(void **state)
{
	struct look_on client = { .kind = LOOK_ON_EPOLL, .family = AF_UNIX, .asked = 1 };

	assert_int_equal(timeline_part(WAIT_RUNS, NULL), ACCOUNT_RUNNING);
	assert_int_equal(timeline_part(WAIT_FOR_CPU, NULL), ACCOUNT_QUEUE);
	assert_int_equal(timeline_part(WAIT_BLOCKED + WAIT_LOCK, NULL), ACCOUNT_LOCK);
	assert_int_equal(timeline_part(WAIT_BLOCKED + WAIT_SLEEP, NULL), ACCOUNT_SLEEP);
	assert_int_equal(timeline_part(WAIT_BLOCKED + WAIT_IDLE, NULL), ACCOUNT_IDLE);
	assert_int_equal(timeline_part(WAIT_BLOCKED + WAIT_IDLE, &client), ACCOUNT_SOCKET);
}

UNIT_TESTS(timeline)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widths), cmocka_unit_test(test_spread),
		cmocka_unit_test(test_pools),  cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_looks),  cmocka_unit_test(test_none),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
