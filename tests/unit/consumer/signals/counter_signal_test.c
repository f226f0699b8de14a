/* SPDX-License-Identifier: BSD-2-Clause */
/* The common part of signals that count; the broker's programs are a descriptor. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/signals/counter_signal.h"

#include <errno.h>
#include <fcntl.h>

#include "consumer/signals/signal_programs.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static struct signal_programs programs;
static const struct signal_host host = { .programs = &programs };
static struct signal_target target;
static struct signal *counts;
static int emptied;

static int setup(void **state)
{
	programs = (struct signal_programs){};
	programs.of[SIGNAL_BLOCK].fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	programs.of[SIGNAL_BLOCK].n_fds = 1;
	target = (struct signal_target){ .start_ns = clock_mono_ns() - 70 * NSEC_PER_MSEC };
	counts = counter_signal_new(sizeof(*counts), NULL);
	assert_non_null(counts);
	counts->id = SIGNAL_BLOCK;
	emptied = 0;
	return 0;
}

static int teardown(void **state)
{
	free(counts);
	signal_programs_done(&programs);
	return 0;
}

static void empty(const struct pinned_maps *pins)
{
	emptied++;
}

/* Only the first session empties the tables, and a session is not attached twice. */
static void test_hold(void **state)
{
	struct signal next = { .id = SIGNAL_BLOCK };

	assert_string_equal(counts->off_reason, "it has not been attached yet");
	assert_true(counter_signal_hold(counts, &host, &target, "a part", empty));
	counter_signal_started(counts, &host, &target, 0, "unreadable");
	assert_null(counts->off_reason);
	assert_int_equal(counts->late_ms, 0);
	assert_false(counter_signal_hold(counts, &host, &target, "a part", empty));
	assert_true(counter_signal_hold(&next, &host, &target, "a part", empty));
	assert_int_equal(emptied, 1);
	assert_int_equal(programs.of[SIGNAL_BLOCK].holders, 2);
	counter_signal_end(&next, &host, NULL, NULL, NULL);
	counter_signal_end(counts, &host, NULL, NULL, NULL);
	assert_int_equal(programs.of[SIGNAL_BLOCK].holders, 0);
}

/* No attach after the end, nor for a part of a cgroup that is not counted on its own. */
static void test_refused(void **state)
{
	target.by_process = true;
	assert_false(counter_signal_hold(counts, &host, &target, "a part", empty));
	assert_string_equal(counts->off_reason, "a part");
	target.stop_ns = 1;
	assert_false(counter_signal_hold(counts, &host, &target, NULL, empty));
	assert_int_equal(emptied, 0);
	assert_int_equal(programs.of[SIGNAL_BLOCK].holders, 0);
}

/* A first reading that fails detaches; a later attach is late. */
static void test_late(void **state)
{
	assert_true(counter_signal_hold(counts, &host, &target, NULL, NULL));
	counter_signal_started(counts, &host, &target, -EIO, "unreadable");
	assert_string_equal(counts->off_reason, "unreadable");
	assert_false(counts->held);
	counts->tried = true;
	programs.of[SIGNAL_BLOCK].fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	programs.of[SIGNAL_BLOCK].n_fds = 1;
	assert_true(counter_signal_hold(counts, &host, &target, NULL, NULL));
	counter_signal_started(counts, &host, &target, 0, "unreadable");
	assert_null(counts->off_reason);
	assert_in_range(counts->late_ms, 70, 60000);
}

/* Evidence only without a reason. */
static void test_end(void **state)
{
	const struct ledger ledger = {};
	int evidence = 0;

	counter_signal_end(counts, &host, "unreadable", &evidence, &ledger);
	assert_string_equal(counts->off_reason, "unreadable");
	assert_null(counts->evidence);
	assert_null(counts->counted);
	counter_signal_end(counts, &host, NULL, &evidence, &ledger);
	assert_null(counts->off_reason);
	assert_ptr_equal(counts->evidence, &evidence);
	assert_ptr_equal(counts->counted, &ledger);
}

static void test_write(void **state)
{
	struct jsonw w;

	jsonw_init(&w, 1000);
	jsonw_object(&w, NULL);
	assert_false(counter_signal_write_begin("block", false, "unreadable", &w));
	assert_true(counter_signal_write_begin("reclaim", true, NULL, &w));
	jsonw_object_end(&w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_memory_equal(
		w.data, "{\"block\":null,\"block_reason\":\"unreadable\",\"reclaim\":{}}", w.bytes);
	jsonw_done(&w);
}

UNIT_TESTS(counter_signal)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hold, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
