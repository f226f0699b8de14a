/* SPDX-License-Identifier: BSD-2-Clause */
/* What is removed from the table of long waits, and when. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/evidence/locks/long_wait_table.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"

static struct pinned_maps pins;
static struct slot slots[3];
static struct control control;

static int setup(void **state)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);

	memset(slots, 0, sizeof(slots));
	memset(&control, 0, sizeof(control));
	pins = (struct pinned_maps){ .slots = slots, .control = &control };
	pins.abi.slots = ARRAY_SIZE(slots);
	pins.signal_fd[PINNED_MAP_long_waits] = bpf_map_create(
		BPF_MAP_TYPE_HASH, "unit", 4, sizeof(struct long_wait), 4096, &options);
	return 0;
}

static int teardown(void **state)
{
	close(pins.signal_fd[PINNED_MAP_long_waits]);
	return 0;
}

static void put(uint32_t from, uint32_t n, uint16_t slot)
{
	const struct long_wait w = { .slot = slot };

	for (uint32_t i = from; i < from + n; i++)
		assert_int_equal(bpf_map_update_elem(pins.signal_fd[PINNED_MAP_long_waits], &i, &w,
						     BPF_NOEXIST),
				 0);
}

static size_t count(void)
{
	struct long_wait_elements e = {};
	size_t n = 0;

	do {
		assert_int_equal(long_wait_table_read(&pins, &e), 0);
		n += e.part.count;
	} while (e.part.more);
	return n;
}

/* A sweep keeps the elements of a running session, and goes on in slices. */
static void test_sweep(void **state)
{
	struct long_wait_sweep sweep = {};
	unsigned int steps = 0;

	if (pins.signal_fd[PINNED_MAP_long_waits] < 0)
		skip();
	put(0, 1000, 1);
	put(1000, 500, 2);
	control.used[TABLE_LONG_WAITS] = 1500;
	slots[1].payer = 1;
	slots[1].used[TABLE_LONG_WAITS] = 1000;
	slots[2].state = SLOT_CAPTURE;
	long_wait_table_sweep_begin(&sweep);
	for (; sweep.elements; steps++)
		long_wait_table_sweep_step(&sweep, &pins, 0);
	assert_true(steps > 2);
	assert_int_equal(count(), 500);
	/* What goes is given back to its owner's share. */
	assert_int_equal(control.used[TABLE_LONG_WAITS], 500);
	assert_int_equal(slots[1].used[TABLE_LONG_WAITS], 0);
	slots[1].state = SLOT_CAPTURE;
	slots[2].state = SLOT_RECORDER;
	slots[2].outer = 2; /* slot 1 is around it, and a session runs there */
	long_wait_table_sweep_begin(&sweep);
	long_wait_table_sweep_step(&sweep, &pins, UINT64_MAX);
	assert_null(sweep.elements);
	assert_int_equal(count(), 500);
	long_wait_table_empty(&pins);
	assert_int_equal(count(), 0);
	assert_int_equal(control.used[TABLE_LONG_WAITS], 0);
	long_wait_table_sweep_begin(&sweep);
	long_wait_table_sweep_stop(&sweep);
	assert_null(sweep.elements);
}

UNIT_TESTS(long_wait_table)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sweep, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
