/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose waits for locks are passed on to the disk that the holders waited for. */
#include "consumer/report/find_locks.h"

#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/lock_waits.h"
#include "consumer/signals/thread_pools.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .pins = &pins };
static const struct signal_target target;

static struct signal *new_signal(struct session_result *s, enum signal_bit id)
{
	struct signal *signal = signals_new(id, &host, &target);

	assert_non_null(signal);
	s->signals[id] = signal;
	return signal;
}

/* Two processes had a semaphore for a third: what they did, and what is passed on of 3 s. */
static uint64_t passed(uint64_t io_ns, enum lock_pattern pattern)
{
	struct lock_waited item = { .lock = { .address = 0xc0de, .tgid = 77 },
				    .locks = 1,
				    .start_ns = 5,
				    .total_ns = 3 * NSEC_PER_SEC,
				    .threads = 1,
				    .pattern = pattern,
				    .n_wakers = 2,
				    .waker_waits = 8,
				    .woken = {
					    { .tid = 80, .tgid = 80, .waits = 6, .comm = "db" },
					    { .tid = 81, .tgid = 81, .waits = 2, .comm = "db" } } };
	struct lock_waits locks = { .items = &item, .count = 1 };
	struct thread_pool items[] = {
		{ .tgid = 80, .start_ns = 9, .name = "db", .wall_ns = 2 * NSEC_PER_SEC },
		{ .tgid = 81, .start_ns = 9, .name = "db", .wall_ns = 2 * NSEC_PER_SEC },
	};
	struct thread_pools pools = { .items = items, .count = ARRAY_SIZE(items) };
	struct session_result *session = report_testing_new_session("/a");
	static struct summary summary;
	struct findings_search s = { .session = session, .summary = &summary };

	items[0].part_ns[ACCOUNT_IO] = io_ns;
	new_signal(session, SIGNAL_LOCK)->locks = &locks;
	new_signal(session, SIGNAL_POOLS)->pools = &pools;
	s.part_ns[ACCOUNT_LOCK] = s.found.time_ns[FINDINGS_WAITING] = 3 * NSEC_PER_SEC;
	find_locks(&s);
	assert_int_equal(s.part_ns[ACCOUNT_IO], s.passed_ns);
	session->signals[SIGNAL_POOLS]->pools = NULL;
	session->signals[SIGNAL_LOCK]->locks = NULL;
	session_result_free(session);
	return s.passed_ns;
}

static void test_passed(void **state)
{
	assert_int_equal(passed(NSEC_PER_SEC, LOCK_PATTERN_NONE), 3 * NSEC_PER_SEC / 8 * 6);
	/* Of a holder that waited for disks a tenth of its time nobody waited for the disk. */
	assert_int_equal(passed(NSEC_PER_SEC / 5, LOCK_PATTERN_NONE), 0);
	/* A lock with a pattern is a finding of its own, which says what its holder waited for. */
	assert_int_equal(passed(NSEC_PER_SEC, LOCK_PATTERN_LONG_HOLD), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_passed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
