/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about locks, against their schema. */
#include "consumer/report/session_locks.h"

#include <string.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/lock_waits.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .pins = &pins };
static const struct signal_target target;

static struct session_result *new_session(const struct lock_waits *waits)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_LOCK, &host, &target);

	assert_non_null(signal);
	if (waits)
		signal->why = NULL;
	signal->locks = waits;
	s->signals[SIGNAL_LOCK] = signal;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

static struct lock_waited items[] = {
	{ .lock = { .address = 0x7f00c0de1000, .tgid = 77, .kind = LOCK_PI },
	  .locks = 1,
	  .start_ns = 5,
	  .comm = "ap\x01i",
	  .waits = 40,
	  .total_ns = 4 * NSEC_PER_SEC,
	  .open = 2,
	  .open_ns = 7,
	  .longest_ns = NSEC_PER_SEC,
	  .longest_tid = 81,
	  .longest_comm = "worker-3",
	  .p50_ns = 5,
	  .p99_ns = 9,
	  .threads = 3,
	  .pattern = LOCK_PATTERN_LONG_HOLD,
	  .n_wakers = 2,
	  .wakers = 3,
	  .woken = { { .tid = 80, .tgid = 77, .waits = 30, .held_ns = 100, .comm = "writer-3" },
		     { .kind = LOCK_WAKER_INTERRUPT, .waits = 8, .held_ns = 50 } } },
	{ .lock = { .tgid = 78, .kind = LOCK_FILE },
	  .locks = 1,
	  .waits = 1,
	  .total_ns = 3,
	  .longest_ns = 3,
	  .threads = 1 },
	{ .locks = 9, .waits = 12, .total_ns = 2, .longest_ns = 1 },
};

static void test_lines(void **state)
{
	struct lock_waits waits = { .items = items, .count = ARRAY_SIZE(items) };
	struct session_result *s;
	json_object *all, *line, *waker;

	waits.ledger = (struct ledger){ .attempted = 53, .emitted = 53 };
	s = new_session(&waits);
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 4);
	line = at(all, 0);
	assert_string_equal(get(line, "type"), "lock");
	assert_string_equal(get(line, "kind"), "pi_futex");
	assert_string_equal(get(line, "address"), "0x7f00c0de1000");
	assert_string_equal(get(line, "pattern"), "long_hold");
	assert_int_equal(number(line, "waits"), 40);
	assert_int_equal(number(line, "wakers_more"), 1);
	assert_int_equal(number(json_object_object_get(line, "longest"), "tid"), 81);
	waker = json_object_array_get_idx(json_object_object_get(line, "wakers"), 0);
	assert_string_equal(get(waker, "by"), "thread");
	assert_string_equal(get(waker, "comm"), "writer-3");
	assert_int_equal(number(waker, "held_ns"), 100);
	waker = json_object_array_get_idx(json_object_object_get(line, "wakers"), 1);
	assert_string_equal(get(waker, "by"), "interrupt");
	assert_false(json_object_object_get_ex(waker, "tid", NULL));
	assert_false(json_object_object_get_ex(at(all, 1), "address", NULL));
	assert_int_equal(number(at(all, 2), "others"), 9);
	assert_string_equal(get(at(all, 3), "verdict"), "complete");
	json_object_put(all);
	session_result_free(s);
}

/* Waits that found no room make the session partial, and the verdict says which table it was. */
static void test_losses(void **state)
{
	struct lock_waits waits = {};
	struct session_result *s;
	json_object *all, *ledger;

	waits.ledger = (struct ledger){ .attempted = 12, .emitted = 10 };
	waits.ledger.lost[DROP_LOCKS_FULL] = 2;
	s = new_session(&waits);
	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	assert_string_equal(get(at(all, 0), "verdict"), "partial");
	assert_non_null(strstr(get(at(all, 0), "verdict_reason"), "2 of 12 waits"));
	ledger = json_object_object_get(json_object_object_get(at(all, 0), "ledger"), "lock");
	assert_int_equal(number(json_object_object_get(ledger, "lost"), "locks_full"), 2);
	json_object_put(all);
	session_result_free(s);
}

/* It did not run: no line, and the end says why. */
static void test_missing(void **state)
{
	struct session_result *s = new_session(NULL);
	json_object *all;

	report_testing_report(s);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 1);
	assert_null(json_object_object_get(at(all, 0), "locks"));
	assert_non_null(get(at(all, 0), "locks_reason"));
	json_object_put(all);
	session_result_free(s);
}

#define EACH(test) \
	cmocka_unit_test_setup_teardown(test, report_testing_setup, report_testing_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_lines),
		EACH(test_losses),
		EACH(test_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
