/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about locks, against their schema. */
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/locks/session_locks.h"

#include <string.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static struct session_result *new_session(struct lock_waits *waits)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_LOCK, &host, &target);

	assert_non_null(signal);
	if (waits)
		signal->off_reason = NULL;
	signal->evidence = waits;
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
	  .p90_ns = 7,
	  .p99_ns = 9,
	  .buckets = { [50] = 39, [LOCK_BUCKETS - 1] = 1 },
	  .threads = 3,
	  .woken_in_vain = 3,
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
	  .buckets = { 1 },
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
	assert_int_equal(number(line, "again"), 3);
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

/* Of all waits, and of the locks that have a line; with the name that a lock has. */
static void test_histograms(void **state)
{
	struct lock_waits waits = { .items = items, .count = ARRAY_SIZE(items) };
	const struct lock_name names[] = { { .module = "/usr/bin/api", .symbol = "store" },
					   {},
					   {} };
	struct session_result *s;
	json_object *all, *line, *bucket;

	waits.ledger = (struct ledger){ .attempted = 53, .emitted = 53 };
	waits.all = items[0];
	s = new_session(&waits);
	session_locks_put(s, &report_testing_lines,
			  &(struct event_subject){ .cgroup = "/a", .cgroup_id = 1, .session = 9 },
			  NULL, names);
	all = report_testing_finish();
	assert_int_equal(json_object_array_length(all), 3 + 3);
	line = at(all, 3);
	assert_string_equal(get(line, "signal"), "lock");
	assert_string_equal(get(json_object_object_get(line, "key"), "of"), "all");
	line = at(all, 4);
	assert_string_equal(get(json_object_object_get(line, "key"), "address"), "0x7f00c0de1000");
	assert_string_equal(get(json_object_object_get(line, "key"), "symbol"), "store");
	assert_int_equal(number(line, "count"), 40);
	assert_int_equal(number(line, "sum"), 4 * NSEC_PER_SEC);
	bucket = json_object_array_get_idx(json_object_object_get(line, "buckets"), 0);
	assert_int_equal(json_object_get_int64(json_object_array_get_idx(bucket, 0)), 1ll << 35);
	assert_int_equal(number(line, "p90"), 1ll << 35);
	assert_null(json_object_object_get(line, "p99"));
	line = at(all, 5);
	assert_int_equal(number(json_object_object_get(line, "key"), "pid"), 78);
	json_object_put(all);
	session_result_free(s);
}

/* Waits without room make the session partial, and the verdict names the table. */
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
	assert_non_null(strstr(get(at(all, 0), "verdict_reason"), "2 of 12 lock waits"));
	ledger = json_object_object_get(json_object_object_get(at(all, 0), "ledger"), "lock");
	assert_int_equal(number(json_object_object_get(ledger, "lost"), "locks_full"), 2);
	json_object_put(all);
	session_result_free(s);
}

/* A table that was not full is not reported as full: its option would not help. */
static void test_no_memory(void **state)
{
	struct lock_waits waits = { .ledger = { .attempted = 12, .emitted = 10 } };
	struct session_result *s;
	json_object *all;
	const char *reason;

	waits.ledger.lost[DROP_NO_MEMORY] = 2;
	s = new_session(&waits);
	report_testing_report(s);
	all = report_testing_finish();
	assert_string_equal(get(at(all, 0), "verdict"), "partial");
	reason = get(at(all, 0), "verdict_reason");
	assert_non_null(strstr(reason, "2 of 12 lock waits were not recorded: the kernel had"));
	assert_null(strstr(reason, "full"));
	json_object_put(all);
	session_result_free(s);
}

/* A lock with a name, one with a file without names, and one with an unreadable file. */
static void test_names(void **state)
{
	const struct lock_name names[] = {
		{ .module = "/lib/lib\x01shop.so", .symbol = "led\x02ger", .offset = 40 },
		{ .module = "/bin/shop", .reason = "stripped" },
		{ .reason = "no_permission" },
		{ .memory = &(struct lock_memory){ .kind = LOCK_MEMORY_HEAP, .offset = 64 } },
		{ .memory = &(struct lock_memory){ .kind = LOCK_MEMORY_STACK, .tid = 81 } },
		{ .memory = &(struct lock_memory){ .kind = LOCK_MEMORY_SHARED,
						   .inode = 5,
						   .offset = 128,
						   .name = "memfd:\x01queue" } },
		{ .memory = &(struct lock_memory){ .kind = LOCK_MEMORY_ANONYMOUS },
		  .reason = "no_permission" },
		{ .memory = &(struct lock_memory){ .kind = LOCK_MEMORY_FILE, .inode = 5 } },
	};
	struct lock_waited eight[] = { items[0], items[0], items[0], items[0],
				       items[0], items[0], items[0], items[0] };
	struct lock_waits waits = { .items = eight, .count = ARRAY_SIZE(eight) };
	struct session_result *s = new_session(&waits);
	const struct event_subject subject = session_result_subject(s);
	json_object *all, *memory;

	session_locks_put(s, &report_testing_lines, &subject, NULL, names);
	all = report_testing_finish();
	assert_string_equal(get(at(all, 0), "module"), "/lib/lib\x01shop.so");
	assert_string_equal(get(at(all, 0), "symbol"), "led\x02ger");
	assert_int_equal(number(at(all, 0), "symbol_offset"), 40);
	assert_string_equal(get(at(all, 1), "symbol_reason"), "stripped");
	assert_false(json_object_object_get_ex(at(all, 1), "symbol", NULL));
	assert_string_equal(get(at(all, 2), "symbol_reason"), "no_permission");
	assert_false(json_object_object_get_ex(at(all, 2), "module", NULL));
	assert_false(json_object_object_get_ex(at(all, 2), "memory", NULL));
	memory = json_object_object_get(at(all, 3), "memory");
	assert_string_equal(get(memory, "kind"), "heap");
	assert_int_equal(number(memory, "offset"), 64);
	memory = json_object_object_get(at(all, 4), "memory");
	assert_string_equal(get(memory, "kind"), "stack");
	assert_int_equal(number(memory, "tid"), 81);
	memory = json_object_object_get(at(all, 5), "memory");
	assert_string_equal(get(memory, "name"), "memfd:\x01queue");
	assert_int_equal(number(memory, "offset"), 128);
	memory = json_object_object_get(at(all, 6), "memory");
	assert_string_equal(get(memory, "kind"), "anonymous");
	memory = json_object_object_get(at(all, 7), "memory");
	assert_int_equal(number(memory, "offset"), 0);
	json_object_put(all);
	session_result_free(s);
}

/* For a stack the innermost function outside of the C library is reported. */
static void test_release(void **state)
{
	const struct named_frame frames[] = { { .fn = "futex_wake", .module = "kernel" },
					      { .fn = "unlock", .module = "/lib/libc.so.6" },
					      { .module = "/usr/bin/api" },
					      { .fn = "flush_index", .module = "/usr/bin/api" },
					      { .fn = "main", .module = "/usr/bin/api" } };
	const struct stack stack = { .kernel_frames = 1, .user_frames = 4 };
	struct lock_release release;

	session_locks_release(&stack, frames, ARRAY_SIZE(frames), &release);
	assert_string_equal(release.fn, "flush_index");
	session_locks_release(&stack, frames, 3, &release);
	assert_null(release.fn);
}

/* It did not run: no line, and the end has the reason. */
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

UNIT_TESTS(session_locks)
{
	const struct CMUnitTest tests[] = {
		EACH(test_lines),
		EACH(test_names),
		EACH(test_histograms),
		EACH(test_losses),
		EACH(test_no_memory),
		EACH(test_missing),
		cmocka_unit_test(test_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
