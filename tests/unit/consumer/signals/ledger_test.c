/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/signals/ledger.h"
#include "shared/tools/macro.h"

/* The reasons that the kernel counts, as ledger_close may use them. */
static const enum drop kernel_reasons[] = { DROP_RING_FULL, DROP_STACK_KERNEL, DROP_STACK_USER,
					    DROP_STALE };

static void assert_sums(const struct ledger *l)
{
	assert_int_equal(l->attempted, l->emitted + ledger_lost(l));
}

static void test_names(void **state)
{
	for (int i = 0; i < DROP_COUNT_; i++) {
		assert_true(ledger_drop_name((enum drop)i)[0]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(ledger_drop_name((enum drop)i),
						ledger_drop_name((enum drop)k));
	}
	assert_string_equal(ledger_drop_name(DROP_RING_FULL), "ring_full");
	assert_string_equal(ledger_verdict_name(VERDICT_COMPLETE), "complete");
	assert_string_equal(ledger_verdict_name(VERDICT_PARTIAL), "partial");
	assert_string_equal(ledger_verdict_name(VERDICT_INCONCLUSIVE), "inconclusive");
}

/* What a table that was not full lost has a reason of its own, and both together are all. */
static void test_lose(void **state)
{
	struct ledger l = { .attempted = 12 };

	ledger_lose(&l, DROP_LOCKS_FULL, 10, 4);
	ledger_lose(&l, DROP_LOCKS_FULL, 2, 9);
	assert_int_equal(l.lost[DROP_LOCKS_FULL], 6);
	assert_int_equal(l.lost[DROP_NO_MEMORY], 6);
	assert_sums(&l);
}

static void test_close_exact(void **state)
{
	struct ledger l = { .attempted = 100, .emitted = 60, .lost[DROP_MAP_FULL] = 10 };
	uint64_t kernel[SLOT_LOST_REASONS] = { [DROP_RING_FULL] = 20, [DROP_STACK_USER] = 7 };

	ledger_close(&l, kernel);
	assert_sums(&l);
	assert_int_equal(l.lost[DROP_RING_FULL], 20);
	assert_int_equal(l.lost[DROP_STACK_USER], 7);
	assert_int_equal(l.lost[DROP_MAP_FULL], 10);
	assert_int_equal(l.lost[DROP_UNACCOUNTED], 3);
}

/* Losses of the ring after the session's end are counted there too: they are not this one's. */
static void test_close_counters_exceed(void **state)
{
	struct ledger l = { .attempted = 50, .emitted = 45 };
	uint64_t kernel[SLOT_LOST_REASONS] = { [DROP_RING_FULL] = 1000, [DROP_STALE] = 2 };

	ledger_close(&l, kernel);
	assert_sums(&l);
	assert_int_equal(l.lost[DROP_STALE], 2);
	assert_int_equal(l.lost[DROP_RING_FULL], 3);
	assert_int_equal(l.lost[DROP_UNACCOUNTED], 0);
}

/* What the nearer counters explain is not given to the farther ones, whichever reason comes first.
 */
static void test_assign_first(void **state)
{
	struct ledger l = { .attempted = 60, .emitted = 40 };
	uint64_t near[SLOT_LOST_REASONS] = { [DROP_RING_FULL] = 12 };
	uint64_t far[SLOT_LOST_REASONS] = { [DROP_STALE] = 5, [DROP_RING_FULL] = 100 };

	ledger_assign(&l, near);
	assert_int_equal(l.lost[DROP_RING_FULL], 12);
	assert_int_equal(near[DROP_RING_FULL], 0);
	ledger_close(&l, far);
	assert_sums(&l);
	assert_int_equal(l.lost[DROP_STALE], 5);
	assert_int_equal(l.lost[DROP_RING_FULL], 15);
	assert_int_equal(far[DROP_RING_FULL], 97);
}

static void test_close_more_arrived(void **state)
{
	struct ledger l = { .attempted = 10, .emitted = 12, .lost[DROP_MAP_FULL] = 1 };
	uint64_t kernel[SLOT_LOST_REASONS] = { [DROP_RING_FULL] = 5 };

	ledger_close(&l, kernel);
	assert_sums(&l);
	assert_int_equal(l.attempted, 13);
	assert_int_equal(l.emitted, 12);
	assert_int_equal(l.lost[DROP_RING_FULL], 0);
}

static void test_close_random(void **state)
{
	uint64_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct ledger l = {
			.attempted = next_random(&seed) % 2000,
			.emitted = next_random(&seed) % 1000,
		};
		const struct ledger before = l;
		uint64_t kernel[SLOT_LOST_REASONS], left[SLOT_LOST_REASONS];

		if (round & 2)
			l.lost[DROP_MAP_FULL] = next_random(&seed) % 300;
		if (round & 4)
			l.lost[DROP_HELD] = next_random(&seed) % 300;
		for (size_t i = 0; i < ARRAY_SIZE(kernel); i++)
			left[i] = kernel[i] = next_random(&seed) % (round % 3 ? 200 : 5000);
		ledger_close(&l, left);
		assert_sums(&l);
		assert_int_equal(l.emitted, before.emitted);
		assert_true(l.attempted >= before.attempted);
		for (size_t i = 0; i < ARRAY_SIZE(kernel_reasons); i++)
			assert_int_equal(l.lost[kernel_reasons[i]] + left[kernel_reasons[i]],
					 kernel[kernel_reasons[i]]);
	}
}

static void test_add(void **state)
{
	struct ledger a = { .attempted = 3, .emitted = 1, .lost = { [DROP_HELD] = 2 } };
	const struct ledger b = { .attempted = 7,
				  .emitted = 4,
				  .lost = { [DROP_HELD] = 1, [DROP_UNACCOUNTED] = 2 } };

	ledger_add(&a, &b);
	assert_int_equal(a.attempted, 10);
	assert_int_equal(a.emitted, 5);
	assert_int_equal(ledger_lost(&a), 5);
	assert_sums(&a);
}

static void test_verdict(void **state)
{
	static const struct {
		uint64_t attempted, lost, during, expected;
		enum verdict verdict;
	} rows[] = {
		{ 0, 0, 0, UINT64_MAX, VERDICT_COMPLETE },
		{ 100, 0, 100, UINT64_MAX, VERDICT_COMPLETE },
		{ 100, 0, 100, 100, VERDICT_COMPLETE },
		{ 100, 1, 100, 100, VERDICT_PARTIAL },
		{ 100, 50, 100, 100, VERDICT_PARTIAL },
		{ 100, 51, 100, 100, VERDICT_INCONCLUSIVE },
		{ 1, 1, 1, UINT64_MAX, VERDICT_INCONCLUSIVE },
		/* A silent gap: fewer than 85 % of the ticks that the CPU time calls for. */
		{ 309, 0, 309, 484, VERDICT_PARTIAL },
		{ 169, 0, 169, 200, VERDICT_PARTIAL },
		{ 170, 0, 170, 200, VERDICT_COMPLETE },
		/* With few ticks only less than half means something, with fewer nothing does. */
		{ 100, 0, 100, 199, VERDICT_COMPLETE },
		{ 49, 0, 49, 100, VERDICT_PARTIAL },
		{ 50, 0, 50, 100, VERDICT_COMPLETE },
		{ 1, 0, 1, 39, VERDICT_COMPLETE },
		{ 19, 0, 19, 40, VERDICT_PARTIAL },
		/* Time that ran before does not count for the gap in during. */
		{ 200, 0, 10, 100, VERDICT_PARTIAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ledger all = { .attempted = rows[i].attempted,
				      .emitted = rows[i].attempted - rows[i].lost,
				      .lost[DROP_RING_FULL] = rows[i].lost };
		struct ledger during = { .attempted = rows[i].during };
		char why[LEDGER_REASON_BYTES] = "untouched";

		assert_int_equal(ledger_verdict(&all, &during, rows[i].expected, why),
				 rows[i].verdict);
		if (rows[i].verdict == VERDICT_COMPLETE)
			assert_string_equal(why, "");
		else
			assert_true(why[0] && strcmp(why, "untouched") != 0);
	}
}

/* The sentence has both numbers; too many ticks are reported for a complete ledger too. */
static void test_verdict_says_ticks(void **state)
{
	const struct ledger few = { .attempted = 309, .emitted = 309 };
	const struct ledger many = { .attempted = 576, .emitted = 576 };
	char why[LEDGER_REASON_BYTES];

	assert_int_equal(ledger_verdict(&few, &few, 484, why), VERDICT_PARTIAL);
	assert_non_null(strstr(why, "309 "));
	assert_non_null(strstr(why, " 484"));
	assert_int_equal(ledger_verdict(&many, &many, 500, why), VERDICT_COMPLETE);
	assert_non_null(strstr(why, "576 "));
	assert_non_null(strstr(why, " 500"));
	assert_int_equal(ledger_verdict(&many, &many, 501, why), VERDICT_COMPLETE);
	assert_string_equal(why, "");
}

UNIT_TESTS(ledger)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	     cmocka_unit_test(test_lose),
		cmocka_unit_test(test_close_exact),  cmocka_unit_test(test_close_counters_exceed),
		cmocka_unit_test(test_assign_first), cmocka_unit_test(test_close_more_arrived),
		cmocka_unit_test(test_close_random), cmocka_unit_test(test_add),
		cmocka_unit_test(test_verdict),	     cmocka_unit_test(test_verdict_says_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
