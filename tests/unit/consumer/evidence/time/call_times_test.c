/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits by system call, with a real map. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "consumer/evidence/time/call_times.h"
#include "consumer/kernel/pinned_maps.h"

#define SLOT  2
#define INNER 3 /* within the watch of SLOT */
#define SLOTS 8
#define BEGIN 1000
#define END   5000

static struct pinned_maps pins;
static struct slot slots[SLOTS];
static struct call_waits *each;

static int setup(void **state)
{
	slots[INNER].outer = SLOT + 1;
	pins = (struct pinned_maps){ .slots = slots };
	pins.abi.slots = SLOTS;
	pins.abi.cpus_possible = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	pins.signal_fd[PINNED_MAP_account_calls] =
		bpf_map_create(BPF_MAP_TYPE_PERCPU_HASH, "unit", sizeof(struct account_call_key),
			       sizeof(struct call_waits), 512, NULL);
	each = calloc(pins.abi.cpus_possible, sizeof(*each));
	return each ? 0 : -1;
}

static int teardown(void **state)
{
	close(pins.signal_fd[PINNED_MAP_account_calls]);
	free(each);
	return 0;
}

static bool has_bpf(void)
{
	return pins.signal_fd[PINNED_MAP_account_calls] >= 0;
}

/* On the last CPU. */
static void put_waits(uint32_t slot, uint32_t call, uint64_t waits, uint64_t wait_ns,
		      uint64_t longest_end_ns)
{
	const struct account_call_key key = { slot, call };

	for (uint32_t cpu = 0; cpu < pins.abi.cpus_possible; cpu++)
		each[cpu] = (struct call_waits){};
	each[pins.abi.cpus_possible - 1] =
		(struct call_waits){ .waits = waits,
				     .wait_ns = wait_ns,
				     .longest_ns = wait_ns / 2,
				     .longest_end_ns = longest_end_ns,
				     .longest_tid = call + 1,
				     .buckets = { [7] = (uint32_t)waits } };
	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_account_calls], &key, each, BPF_ANY),
		0);
}

/* The time before is subtracted, slots of the session are one, and open waits are added. */
static void test_difference(void **state)
{
	struct open_wait at_begin = { .wait_ns = 30, .tid = 9, .call = 7 };
	struct open_wait at_end[2] = { { .wait_ns = 3900, .tid = 9, .call = 7 },
				       { .wait_ns = 4500, .tid = 10, .call = 8 } };
	const struct thread_baseline begin = { .begin_ns = BEGIN, .open = { &at_begin, 1 } };
	const struct thread_accounts accounts = { .end_ns = END, .open = { at_end, 2 } };
	struct call_times before = {}, times = {};

	if (!has_bpf()) {
		skip();
		return;
	}
	put_waits(SLOT, 5, 10, 1000, BEGIN - 1);
	assert_int_equal(call_times_read(&pins, &before), 0);
	assert_int_equal(before.count, 1);
	put_waits(SLOT, 5, 12, 1600, BEGIN - 1);
	put_waits(INNER, 5, 1, 200, END - 1);
	put_waits(SLOT, 7, 2, 100, END - 1);
	put_waits(SLOT + 2, 5, 99, 99000, END - 1); /* of another watch */
	assert_int_equal(call_times_end(&pins, SLOT, &before, &begin, &accounts, &times), 0);
	assert_int_equal(times.count, 3);
	assert_int_equal(times.items[0].call, 8);
	assert_int_equal(times.items[0].open, 1);
	assert_int_equal(times.items[0].wait_ns, 4500);
	assert_int_equal(times.items[0].longest_ns, END - BEGIN); /* the rest was before */
	assert_int_equal(times.items[0].longest_end_ns, 0);
	assert_int_equal(times.items[1].call, 7);
	assert_int_equal(times.items[1].waits, 2);
	assert_int_equal(times.items[1].open, 1);
	assert_int_equal(times.items[1].wait_ns, 100 + 3900 - 30);
	assert_int_equal(times.items[1].longest_tid, 9);
	assert_int_equal(times.items[2].call, 5);
	assert_int_equal(times.items[2].waits, 2 + 1);
	assert_int_equal(times.items[2].wait_ns, 600 + 200);
	assert_int_equal(times.items[2].over_ns, 600 + 200);
	assert_int_equal(times.items[2].buckets[7], 2 + 1);
	assert_int_equal(times.items[1].over_ns, 100);
	assert_int_equal(times.items[1].buckets[7], 2);
	assert_int_equal(times.items[0].buckets[7], 0);
	assert_int_equal(times.items[2].longest_ns, 100); /* the longer one was before */
	call_times_done(&before);
	call_times_done(&times);
}

/* More than one call reads; what a reading has can be removed. */
static void test_many(void **state)
{
	struct call_times times = {};

	if (!has_bpf()) {
		skip();
		return;
	}
	for (uint32_t call = 0; call < 300; call++)
		put_waits(SLOT, call, 1, call, 1);
	assert_int_equal(call_times_read(&pins, &times), 0);
	assert_int_equal(times.count, 300);
	for (uint32_t call = 0; call < 300; call++)
		assert_int_equal(times.items[call].call, call);
	assert_int_equal(call_times_empty(&pins, &times), 0);
	call_times_done(&times);
	assert_int_equal(call_times_read(&pins, &times), 0);
	assert_int_equal(times.count, 0);
	call_times_done(&times);
}

static void test_unreadable(void **state)
{
	struct call_times times = {};

	close(pins.signal_fd[PINNED_MAP_account_calls]);
	pins.signal_fd[PINNED_MAP_account_calls] = -1;
	assert_true(call_times_read(&pins, &times) < 0);
	assert_null(times.items);
}

UNIT_TESTS(call_times)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_difference, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
