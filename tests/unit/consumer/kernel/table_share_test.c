/* SPDX-License-Identifier: BSD-2-Clause */
/* The share of a table that a removed element goes back to. */
#include "tests/unit/runner/unit.h"

#include "consumer/kernel/pinned_maps.h"
#include "consumer/kernel/table_share.h"

static void test_counts(void **state)
{
	struct slot slots[3] = { { .payer = 2 }, { .payer = 77 }, { .payer = 2 } };
	struct control control = { .used = { [TABLE_LOCKS] = 9 },
				   .unwatched = { [TABLE_LOCKS] = 4 } };
	struct pinned_maps pins = { .abi.slots = 3, .slots = slots, .control = &control };

	slots[2].used[TABLE_LOCKS] = 5;
	table_share_remove(&pins, TABLE_LOCKS, 0);
	table_share_remove(&pins, TABLE_LOCKS, 2);
	table_share_remove(&pins, TABLE_LOCKS, NO_SLOT);
	/* False words of a map are no index. */
	table_share_remove(&pins, TABLE_LOCKS, 1);
	table_share_remove(&pins, TABLE_LOCKS, 1000);
	assert_int_equal(slots[2].used[TABLE_LOCKS], 3);
	assert_int_equal(slots[0].used[TABLE_LOCKS], 0);
	assert_int_equal(control.unwatched[TABLE_LOCKS], 3);
	assert_int_equal(control.used[TABLE_LOCKS], 4);
	assert_int_equal(control.used[TABLE_ACCOUNTS], 0);
	table_share_reset(&pins, TABLE_LOCKS);
	assert_int_equal(slots[2].used[TABLE_LOCKS], 0);
	assert_int_equal(control.used[TABLE_LOCKS] + control.unwatched[TABLE_LOCKS], 0);
	pins.control = NULL;
	table_share_remove(&pins, TABLE_LOCKS, 0);
	table_share_reset(&pins, TABLE_LOCKS);
}

UNIT_TESTS(table_share)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
