/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>
#include <string.h>

#include "consumer/rules/shares.h"
#include "shared/tools/macro.h"

#define NOW_NS (7200 * NSEC_PER_SEC)
#define MAX_MS 600000u

static struct shares shares;
static struct owner *a, *b, *c;

static int setup(void **state)
{
	shares_init(&shares);
	a = shares_owner(&shares, "/system.slice/a.service");
	b = shares_owner(&shares, "/system.slice/b.service");
	c = shares_owner(&shares, "uid 1000");
	return a && b && c ? 0 : -1;
}

static int teardown(void **state)
{
	shares_done(&shares);
	return 0;
}

static void test_owners(void **state)
{
	assert_ptr_equal(shares_owner(&shares, "uid 1000"), c);
	assert_int_equal(c->refs, 2);
	shares_put(&shares, c);
	shares_put(&shares, shares_ref(c));
	shares_put(&shares, NULL);
	assert_null(shares_ref(NULL));
	assert_int_equal(c->refs, 1);
	/* Forgotten once it has no reference and an hour has passed since its captures. */
	shares_captured(&shares, c, NOW_NS, 5);
	shares_put(&shares, c);
	shares_sweep(&shares, NOW_NS);
	assert_int_equal(shares.owners.count, 3);
	shares_sweep(&shares, NOW_NS + 3600 * NSEC_PER_SEC);
	assert_int_equal(shares.owners.count, 2);
}

/* An owner with more than the newcomer would have gives way, and then no more. */
static void test_yields(void **state)
{
	shares_add(a, SHARE_WATCHES, 4);
	assert_true(shares_yield(a, b, SHARE_WATCHES, 1));
	for (int i = 0; i < 10 && shares_yield(a, b, SHARE_WATCHES, 1); i++) {
		shares_sub(a, SHARE_WATCHES, 1);
		shares_add(b, SHARE_WATCHES, 1);
	}
	assert_int_equal(a->held[SHARE_WATCHES], 2);
	assert_int_equal(b->held[SHARE_WATCHES], 2);
	/* Nor back again. */
	assert_false(shares_yield(b, a, SHARE_WATCHES, 1));
	assert_false(shares_yield(a, a, SHARE_WATCHES, 0));
	assert_false(shares_yield(NULL, a, SHARE_WATCHES, 0));
	assert_false(shares_yield(a, NULL, SHARE_WATCHES, 0));
	assert_false(shares_yield(a, b, SHARE_TABLES, 0));
	shares_sub(a, SHARE_WATCHES, 99);
	assert_int_equal(a->held[SHARE_WATCHES], 0);
	shares_add(NULL, SHARE_ROWS, 1);
	shares_sub(NULL, SHARE_ROWS, 1);
	shares_add(b, SHARE_ROWS, 7);
	shares_clear(&shares, SHARE_ROWS);
	assert_int_equal(b->held[SHARE_ROWS], 0);
	assert_int_equal(b->held[SHARE_WATCHES], 2);
}

enum may { ALL_SPENT, OWNER_SPENT, MAY };

/* Whether the owner may capture something, and otherwise the used-up budget. */
static enum may may_at(struct owner *owner, uint64_t at_ns)
{
	bool of_owner;

	if (shares_left_ms(&shares, owner, MAX_MS, at_ns, &of_owner))
		return MAY;
	return of_owner ? OWNER_SPENT : ALL_SPENT;
}

static enum may may(struct owner *owner)
{
	return may_at(owner, NOW_NS);
}

static uint64_t left(struct owner *owner)
{
	bool of_owner;

	return shares_left_ms(&shares, owner, MAX_MS, NOW_NS, &of_owner);
}

/* Alone one may have all of the hour's seconds, with others half. */
static void test_capture(void **state)
{
	shares_captured(&shares, a, NOW_NS, MAX_MS - 1);
	assert_int_equal(may(a), MAY);
	shares_captured(&shares, a, NOW_NS, 1);
	assert_int_equal(may(a), ALL_SPENT);
	/* Another has its half all the same, and from then on the first has had too much. */
	assert_int_equal(may(b), MAY);
	shares_captured(&shares, b, NOW_NS, 1);
	assert_int_equal(may(a), OWNER_SPENT);
	shares_captured(&shares, b, NOW_NS, MAX_MS / 2 - 2);
	assert_int_equal(may(b), MAY);
	shares_captured(&shares, b, NOW_NS, 1);
	assert_int_equal(may(b), OWNER_SPENT);
	/* A third has its third, in all not more than twice the whole. */
	shares_captured(&shares, c, NOW_NS, MAX_MS / 3 - 1);
	assert_int_equal(may(c), MAY);
	shares_captured(&shares, c, NOW_NS, 1);
	assert_int_equal(may(c), ALL_SPENT);
	shares_captured(&shares, NULL, NOW_NS, MAX_MS / 6);
	assert_int_equal(may(shares_owner(&shares, "/late")), ALL_SPENT);
	/* An hour later all is new. */
	assert_int_equal(may_at(a, NOW_NS + 3600 * NSEC_PER_SEC), MAY);
}

/* How much is left, to the millisecond; what was reserved and not used is given back. */
static void test_left(void **state)
{
	assert_int_equal(left(a), MAX_MS);
	shares_captured(&shares, a, NOW_NS, 1000);
	assert_int_equal(left(a), MAX_MS - 1000);
	assert_int_equal(left(b), MAX_MS / 2);
	shares_captured(&shares, b, NOW_NS, MAX_MS / 4);
	assert_int_equal(left(a), MAX_MS / 2 - 1000);
	shares_captured(&shares, a, NOW_NS, MAX_MS - 1000);
	/* Its third, when all is used up. */
	assert_int_equal(left(c), MAX_MS / 3);
	shares_captured(&shares, NULL, NOW_NS, MAX_MS / 2);
	assert_int_equal(left(c), MAX_MS / 4);
	shares_return(&shares, NULL, NOW_NS, MAX_MS / 2);
	shares_return(&shares, a, NOW_NS, MAX_MS - 1000);
	assert_int_equal(left(a), MAX_MS / 2 - 1000);
}

static void test_rule(void **state)
{
	assert_int_equal(shares_part_left_ms(&shares, a, 1000, 1000, NOW_NS), 0);
	shares_captured(&shares, b, NOW_NS, 1000);
	assert_int_equal(shares_part_left_ms(&shares, a, 1000, 1000, NOW_NS), 500);
	assert_int_equal(shares_part_left_ms(&shares, b, 1000, 1000, NOW_NS), 0);
	assert_int_equal(shares_part_left_ms(&shares, a, 1000, 1900, NOW_NS), 100);
	assert_int_equal(shares_part_left_ms(&shares, a, 1000, 2000, NOW_NS), 0);
	assert_int_equal(shares_part_left_ms(&shares, NULL, 1000, 1000, NOW_NS), 500);
}

/* The heaviest first, by their largest holding. */
static void test_top(void **state)
{
	const uint64_t capacity[SHARE_COUNT_] = {
		[SHARE_WATCHES] = 100, [SHARE_TABLES] = 10, [SHARE_CAPTURED] = MAX_MS
	};
	const struct owner *top[2];
	uint64_t parts[SHARE_COUNT_];
	char name[32];

	assert_int_equal(shares_top(&shares, capacity, NOW_NS, top, 2), 0);
	shares_add(a, SHARE_WATCHES, 50);
	shares_add(b, SHARE_TABLES, 6);
	shares_captured(&shares, c, NOW_NS, MAX_MS / 10);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "/many/%d", i);
		shares_add(shares_owner(&shares, name), SHARE_WATCHES, 1);
	}
	assert_int_equal(shares_top(&shares, capacity, NOW_NS, top, 2), 2);
	assert_ptr_equal(top[0], b);
	assert_ptr_equal(top[1], a);
	assert_int_equal(c->held[SHARE_CAPTURED], MAX_MS / 10);
	shares_parts(&shares, capacity, parts);
	assert_int_equal(parts[SHARE_WATCHES], 100 / 21);
	assert_int_equal(parts[SHARE_TABLES], 10);
	assert_string_equal(share_name(SHARE_ROWS), "rows_bytes");
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(shares)
{
	const struct CMUnitTest tests[] = {
		EACH(test_owners), EACH(test_yields), EACH(test_capture),
		EACH(test_rule),   EACH(test_top),    EACH(test_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
