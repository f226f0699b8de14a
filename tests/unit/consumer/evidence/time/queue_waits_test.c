/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads that waited longest for a CPU. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/evidence/time/queue_waits.h"

/* The ten longest of many, the longest first; a thread without one has none. */
static void test_longest(void **state)
{
	struct thread_account items[40] = {};
	struct thread_accounts all = { .items = items, .count = 40 };
	struct queue_waits q = {};

	for (uint32_t i = 0; i < 40; i++) {
		items[i].tid = i + 1;
		items[i].queue.longest_ns = (uint64_t)(i * 7 % 40) * 10;
	}
	queue_waits_find_longest(&all, &q);
	assert_int_equal(q.n_longest, QUEUE_LONGEST);
	for (size_t i = 0; i < QUEUE_LONGEST; i++)
		assert_int_equal(q.longest[i].wait_ns, 390 - 10 * i);
	q = (struct queue_waits){};
	all.count = 3;
	queue_waits_find_longest(&all, &q);
	assert_int_equal(q.n_longest, 2);
	assert_int_equal(q.longest[0].tid, 3);
}

/* Cgroups below the session's own are among the others for the kernel side. */
static void test_own_and_others(void **state)
{
	struct queue_waits q = { .blame.own_ns = 30 };

	q.pools.all.queue.behind_ns[QUEUE_SIBLINGS] = 5;
	q.pools.all.queue.behind_ns[QUEUE_OTHERS] = 70;
	q.pools.all.queue.behind_ns[QUEUE_UNLISTED] = 2;
	assert_int_equal(queue_waits_own_ns(&q), 35);
	assert_int_equal(queue_waits_others_ns(&q), 42);
	q.blame.own_ns = 100;
	assert_int_equal(queue_waits_others_ns(&q), 0);
}

UNIT_TESTS(queue_waits)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_own_and_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
