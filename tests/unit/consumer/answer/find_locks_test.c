/* SPDX-License-Identifier: BSD-2-Clause */
/* The waits for locks that are passed on to the disk, or the CPU, that the holders waited for. */
#include "consumer/answer/find_locks.h"
#include "consumer/evidence/evidence_kinds.h"

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/chains_testing.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;
static struct chains_testing waits;

/* What is passed on of 3 s of waits for locks. */
struct passed {
	uint64_t io_ns, queue_ns, lock_ns;
};

/*
 * Two threads wait 800 ms each for a lock of that pattern; its holder waits for a disk for `io_ms`
 * of that, and for a CPU the rest.
 */
static struct passed pass(uint64_t io_ms, enum lock_pattern pattern)
{
	struct lock_waited item = { .lock = { .address = 0xc0de, .tgid = CHAINS_TESTING_TGID },
				    .locks = 1,
				    .threads = 2,
				    .total_ns = 3 * NSEC_PER_SEC,
				    .pattern = pattern };
	struct lock_waits locks = { .items = &item, .count = 1 };
	struct session_result *session = report_testing_new_session("/a");
	static struct session_digest summary;
	struct findings_search s = { .session = session, .summary = &summary };
	struct long_waits_thread *holder;
	struct passed passed;

	memset(&waits, 0, sizeof(waits));
	chains_testing_thread(&waits, 71, CHAINS_TESTING_TGID, "api", 1000);
	chains_testing_thread(&waits, 72, CHAINS_TESTING_TGID, "api", 1000);
	holder = chains_testing_thread(&waits, 80, CHAINS_TESTING_TGID, "db", 1000);
	holder->part_ns[ACCOUNT_QUEUE] = holder->wall_ns - io_ms * CHAINS_TESTING_MS;
	chains_testing_wait(&waits, 71, ACCOUNT_LOCK, 100, 900, 80)->address = 0xc0de;
	chains_testing_wait(&waits, 72, ACCOUNT_LOCK, 100, 900, 80)->address = 0xc0de;
	if (io_ms)
		chains_testing_wait(&waits, 80, ACCOUNT_IO, 100, 100 + io_ms, 0);
	assert_int_equal(chains_make(&waits.all, &locks, NULL, NULL, &summary.chains), 0);
	session->signals[SIGNAL_LOCK] = signals_new(SIGNAL_LOCK, &host, &target);
	session->signals[SIGNAL_LOCK]->evidence = &locks;
	s.part_ns[ACCOUNT_LOCK] = s.found.time_ns[FINDINGS_WAITING] = 3 * NSEC_PER_SEC;
	find_locks_pass(&s);
	passed = (struct passed){ s.part_ns[ACCOUNT_IO], s.part_ns[ACCOUNT_QUEUE],
				  s.part_ns[ACCOUNT_LOCK] };
	assert_int_equal(passed.io_ns, s.passed_ns[ACCOUNT_IO]);
	assert_int_equal(passed.queue_ns, s.passed_ns[ACCOUNT_QUEUE]);
	session->signals[SIGNAL_LOCK]->evidence = NULL;
	session_result_free(session);
	chains_done(&summary.chains);
	return passed;
}

static void test_passed(void **state)
{
	struct passed passed = pass(600, LOCK_PATTERN_NONE);

	assert_int_equal(passed.io_ns, 3 * NSEC_PER_SEC / 4 * 3);
	assert_int_equal(passed.queue_ns, 3 * NSEC_PER_SEC / 4);
	assert_int_equal(passed.lock_ns, 0);
	passed = pass(0, LOCK_PATTERN_NONE);
	assert_int_equal(passed.io_ns, 0);
	assert_int_equal(passed.queue_ns, 3 * NSEC_PER_SEC);
	/* A lock with a pattern is a finding of its own, with its holder's wait. */
	passed = pass(600, LOCK_PATTERN_LONG_HOLD);
	assert_int_equal(passed.io_ns, 0);
	assert_int_equal(passed.lock_ns, 3 * NSEC_PER_SEC);
}

UNIT_TESTS(find_locks)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_passed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
