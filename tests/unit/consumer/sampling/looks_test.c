/* SPDX-License-Identifier: BSD-2-Clause */
/* Passes over the threads: how far apart their budget keeps them, and how many it leaves out. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/looks.h"
#include "shared/tools/clock.h"

#define THREADS 4

static struct control control;
static char path[] = "/tmp/looks-XXXXXX";
static struct pinned_maps pins = { .control = &control, .looks_path = path, .abi.slots = 1 };
static struct looks looks;
static struct look_pass last;
static unsigned int seen, passes;
static uint64_t work_ns; /* that each thread takes */

static void take_thread(void *context, uint32_t slot, const struct look_pass *pass,
			const struct look_seen *one)
{
	uint64_t until_ns = clock_thread_ns() + work_ns;

	seen++;
	while (clock_thread_ns() < until_ns)
		;
}

static void take_pass(void *context, const struct look_pass *pass)
{
	last = *pass;
	passes++;
}

static const struct looks_calls calls = { take_thread, take_pass };

/* A file stands for the iterator: threads that are as before. */
static int setup(void **state)
{
	const struct look_head head = { .bytes = sizeof(head), .tid = 7, .flags = LOOK_AS_BEFORE };
	int fd;

	snprintf(path, sizeof(path), "/tmp/looks-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	close(fd);
	seen = passes = 0;
	work_ns = 0;
	return 0;
}

static int teardown(void **state)
{
	looks_done(&looks);
	unlink(path);
	return 0;
}

static void begin(uint64_t permille)
{
	looks_init(&looks, &pins, NULL, permille, &calls, NULL);
	looks_hold(&looks);
}

/* Makes steps until one more pass has ended. */
static void make_pass(void)
{
	unsigned int before = passes;

	while (passes == before) {
		looks_step(&looks);
		usleep(1000);
	}
}

/* Cheap passes come as often as they are due, and nothing is left out. */
static void test_within_budget(void **state)
{
	begin(1000);
	for (int i = 0; i < 4; i++)
		make_pass();
	assert_int_equal(seen, 4 * THREADS);
	assert_int_equal(last.number, 4);
	assert_int_equal(last.skipped, 0);
	assert_false(last.cut);
}

/* 8 ms of a CPU at 20 thousandths: the next pass comes 400 ms later, in place of the eighth. */
static void test_left_out(void **state)
{
	uint64_t began_ns;

	begin(20);
	work_ns = 2 * NSEC_PER_MSEC;
	make_pass(); /* it was asked for: outside of the budget */
	make_pass();
	assert_int_equal(last.skipped, 0);
	began_ns = last.began_ns;
	make_pass();
	assert_in_range(last.began_ns - began_ns, 390 * NSEC_PER_MSEC, UINT64_MAX);
	/* The CPU time of a pass is some more than that of its threads. */
	assert_in_range(last.skipped, 7, 12);
}

/* An earlier request gets the passes that were left out until then, and no more. */
static void test_requested_early(void **state)
{
	uint64_t began_ns;

	begin(1);
	work_ns = 2 * NSEC_PER_MSEC;
	make_pass();
	make_pass();
	began_ns = last.began_ns;
	usleep(110 * 1000);
	looks_ask(&looks);
	make_pass();
	assert_true(last.skipped >= 1);
	/* They begin up to 5 ms early. */
	assert_int_equal(last.skipped,
			 (last.began_ns - began_ns + 5 * NSEC_PER_MSEC) / LOOKS_EVERY_NS - 1);
}

/* The last pass of a session reads the holders again; another one does not. */
static void test_last(void **state)
{
	begin(1000);
	make_pass();
	assert_int_equal(control.look_mode, LOOK_SESSIONS);
	assert_int_equal(looks_ask_last(&looks), last.number + 1);
	make_pass();
	assert_int_equal(control.look_mode, LOOK_HELD_AGAIN);
	looks_ask(&looks);
	make_pass();
	assert_int_equal(control.look_mode, LOOK_SESSIONS);
}

/*
 * A session that begins while a pass runs: the stacks that it needs are reported again by its own
 * first pass, and not by the rest of the running one.
 */
static void test_hold_in_a_pass(void **state)
{
	uint32_t epoch;

	looks_init(&looks, &pins, NULL, 1000, &calls, NULL);
	control.look_mode = LOOK_SESSIONS;
	looks_record(&looks);
	work_ns = 20 * NSEC_PER_MSEC; /* more than a turn: the pass stays in the middle */
	looks_step(&looks);
	assert_true(looks.pass.all && looks_has_rest(&looks) && !passes);
	epoch = control.look_epoch;
	assert_int_equal(looks_hold(&looks), 2);
	while (!passes) {
		assert_int_equal(control.look_epoch, epoch);
		looks_step(&looks);
	}
	assert_int_equal(last.number, 1);
	looks_step(&looks);
	assert_int_equal(control.look_epoch, epoch + 1);
	while (passes < 2)
		looks_step(&looks);
	looks_drop(&looks);
	looks_ask(&looks);
	make_pass();
	assert_int_equal(control.look_epoch, epoch + 1);
}

/* After a pass that ended early, the kernel's side takes threads for reported that were not read.
 */
static void test_cut_forgets(void **state)
{
	const struct look_head broken = { .bytes = 1 };
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	uint32_t epoch;

	assert_true(fd >= 0);
	begin(1000);
	make_pass();
	epoch = control.look_epoch;
	assert_int_equal(write(fd, &broken, sizeof(broken)), sizeof(broken));
	close(fd);
	make_pass();
	assert_true(last.cut);
	assert_int_equal(control.look_epoch, epoch);
	make_pass();
	assert_int_equal(control.look_epoch, epoch + 1);
}

UNIT_TESTS(looks)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_within_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_out, setup, teardown),
		cmocka_unit_test_setup_teardown(test_requested_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hold_in_a_pass, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_forgets, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
