/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about pools of threads, against their schema. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/waits/session_pools.h"

#include <string.h>

#include "consumer/evidence/time/thread_pools.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

/* A session that has these accounts. */
static struct session_result *new_session(const struct thread_pools *pools,
					  const struct ledger *threads)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_POOLS, &host, &target);

	assert_non_null(signal);
	signal->off_reason = NULL;
	signal->evidence = (void *)pools;
	signal->counted = threads;
	s->signals[SIGNAL_POOLS] = signal;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

static const struct thread_pool workers = {
	.tgid = 77,
	.start_ns = 5,
	.name = "w\x01rker-",
	.pools = 1,
	.threads = 96,
	.born = 2,
	.wall_ns = 96 * NSEC_PER_SEC,
	.unaccounted_ns = 1,
	.open_ns = 7,
	.part_ns = { [ACCOUNT_RUNNING] = 6 * NSEC_PER_SEC, [ACCOUNT_LOCK] = 90 * NSEC_PER_SEC - 1 },
	.longest_ns = NSEC_PER_SEC,
	.longest_kind = ACCOUNT_LOCK,
	.longest_tid = 81,
	.longest_comm = "w\x01rker-3",
};

static void test_lines(void **state)
{
	struct thread_pool items[2] = { workers, { .pools = 3, .threads = 4 } };
	const struct thread_pools pools = { .items = items, .count = 2 };
	const struct ledger threads = { .attempted = 100, .emitted = 100 };
	struct session_result *s = new_session(&pools, &threads);
	json_object *all, *end, *blocked;

	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 3);
	assert_string_equal(get(at(all, 0), "type"), "pool");
	assert_int_equal(number(at(all, 0), "pid"), 77);
	assert_int_equal(number(at(all, 0), "threads"), 96);
	assert_int_equal(number(at(all, 0), "running_ns"), 6 * NSEC_PER_SEC);
	assert_int_equal(number(at(all, 0), "born"), 2);
	assert_false(json_object_object_get_ex(at(all, 0), "left", NULL));
	blocked = json_object_object_get(at(all, 0), "blocked_ns");
	assert_int_equal(json_object_object_length(blocked), 1);
	assert_int_equal(number(blocked, "lock"), 90 * NSEC_PER_SEC - 1);
	assert_int_equal(number(json_object_object_get(at(all, 0), "longest"), "tid"), 81);
	assert_int_equal(number(at(all, 1), "others"), 3);
	assert_false(json_object_object_get_ex(at(all, 1), "longest", NULL));
	end = json_object_object_get(json_object_object_get(at(all, 2), "ledger"), "pools");
	assert_int_equal(number(end, "attempted"), 100);
	assert_string_equal(get(at(all, 2), "verdict"), "complete");
	json_object_put(all);
	session_result_free(s);
}

/* The headline has a wait only where it is half of the time and more, and no idle one. */
static void test_headline(void **state)
{
	struct thread_pools pools = { .all = workers };
	const struct ledger threads = { .attempted = 96, .emitted = 96 };
	struct session_result *s = new_session(&pools, &threads);
	char text[256];

	assert_true(session_pools_headline(s, 0, text, sizeof(text)) > 0);
	assert_string_equal(text, "; 94 % of the time of its 96 threads was waiting for locks");
	assert_int_equal(session_pools_headline(s, 0, text, 4), 58);
	/* Most of it on condition variables: that is work more often than a lock. */
	assert_int_equal(session_pools_headline(s, pools.all.wall_ns / 2, text, sizeof(text)), 0);
	pools.all.part_ns[ACCOUNT_IDLE] = pools.all.part_ns[ACCOUNT_LOCK];
	pools.all.part_ns[ACCOUNT_LOCK] = pools.all.wall_ns / 2 - 1;
	assert_int_equal(session_pools_headline(s, 0, text, sizeof(text)), 0);
	pools.all = (struct thread_pool){};
	assert_int_equal(session_pools_headline(s, 0, text, sizeof(text)), 0);
	s->signals[SIGNAL_POOLS]->evidence = NULL;
	assert_int_equal(session_pools_headline(s, 0, text, sizeof(text)), 0);
	json_object_put(report_testing_finish());
	session_result_free(s);
}

/* Threads without an account are in the ledger, and the verdict reports them. */
static void test_lost(void **state)
{
	const struct thread_pools pools = {};
	const struct ledger threads = { .attempted = 100,
					.emitted = 64,
					.lost = { [DROP_THREADS_FULL] = 36 } };
	struct session_result *s = new_session(&pools, &threads);
	json_object *all, *end;

	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	end = at(all, 0);
	assert_string_equal(get(end, "verdict"), "partial");
	assert_non_null(strstr(get(end, "verdict_reason"), "36 of 100 threads"));
	end = json_object_object_get(json_object_object_get(end, "ledger"), "pools");
	assert_int_equal(number(json_object_object_get(end, "lost"), "threads_full"), 36);
	json_object_put(all);
	session_result_free(s);
}

UNIT_TESTS(session_pools)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_headline, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_lost, report_testing_setup,
						report_testing_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
