/* SPDX-License-Identifier: BSD-2-Clause */
/* Which locks are condition variables. */
#include "consumer/evidence/locks/condition_locks.h"

#include "consumer/sampling/wait_kind.h"
#include "tests/unit/consumer/testing/unit_testing.h"

static struct condition_locks all;

static void add(uint64_t address, enum phase phase, bool condition, uint64_t ns)
{
	const struct look_on on = { .address = address };
	const struct stack stack = { .tgid = 7,
				     .phase = (uint8_t)phase,
				     .wait = WAIT_BLOCKED + WAIT_LOCK,
				     .weight_ns = ns };
	const struct known_wait wait = { .on = &on, .condition = condition };

	condition_locks_add(&all, &stack, &wait);
}

/* Most of its looks make it one: it loses its holders, and stays a herd. */
static void test_mark(void **state)
{
	struct lock_waited items[] = {
		{ .lock = { .tgid = 7, .address = 0x10 }, .pattern = LOCK_PATTERN_LONG_HOLD },
		{ .lock = { .tgid = 7, .address = 0x20 }, .pattern = LOCK_PATTERN_LONG_HOLD },
		{ .lock = { .tgid = 7, .address = 0x30 }, .pattern = LOCK_PATTERN_HERD },
		{ .lock = { .tgid = 8, .address = 0x10 }, .pattern = LOCK_PATTERN_CONVOY },
		{ .lock = { .tgid = 7, .address = 0x40 }, .pattern = LOCK_PATTERN_CONVOY },
	};
	struct lock_waits locks = { .items = items, .count = 5 };

	condition_locks_init(&all);
	add(0x10, PHASE_DURING, true, 60);
	add(0x10, PHASE_DURING, false, 40);
	add(0x20, PHASE_DURING, true, 40);
	add(0x20, PHASE_DURING, false, 60);
	add(0x30, PHASE_DURING, true, 10);
	add(0x40, PHASE_BEFORE, true, 10);
	add(0, PHASE_DURING, true, 10);
	condition_locks_mark(&all, &locks);
	assert_true(items[0].condition && items[0].pattern == LOCK_PATTERN_NONE);
	assert_true(!items[1].condition && items[1].pattern == LOCK_PATTERN_LONG_HOLD);
	assert_true(items[2].condition && items[2].pattern == LOCK_PATTERN_HERD);
	assert_true(!items[3].condition && items[3].pattern == LOCK_PATTERN_CONVOY);
	assert_true(!items[4].condition && items[4].pattern == LOCK_PATTERN_CONVOY);
	condition_locks_done(&all);
}

/* Beyond the limit it is not known. */
static void test_limit(void **state)
{
	struct lock_waited item = { .lock = { .tgid = 7 }, .pattern = LOCK_PATTERN_CONVOY };
	struct lock_waits locks = { .items = &item, .count = 1 };

	condition_locks_init(&all);
	for (uint64_t i = 1; i <= CONDITION_LOCKS_MAX + 1; i++)
		add(i * 64, PHASE_DURING, true, 1);
	assert_int_equal(all.count, CONDITION_LOCKS_MAX);
	item.lock.address = (CONDITION_LOCKS_MAX + 1) * 64;
	condition_locks_mark(&all, &locks);
	assert_false(item.condition);
	item.lock.address = CONDITION_LOCKS_MAX * 64;
	condition_locks_mark(&all, &locks);
	assert_true(item.condition);
	condition_locks_done(&all);
}

UNIT_TESTS(condition_locks)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mark),
					    cmocka_unit_test(test_limit) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
