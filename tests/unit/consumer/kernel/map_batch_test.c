/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole maps in one call, on a map of the kernel's own; as root, else skipped. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

#include "consumer/kernel/map_batch.h"

#define ROOM 8

static int fd;

static int setup(void **state)
{
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, "batch", sizeof(uint64_t), sizeof(uint32_t), ROOM,
			    NULL);
	return 0;
}

static int teardown(void **state)
{
	if (fd >= 0)
		close(fd);
	return 0;
}

static void put(uint64_t key, uint32_t value)
{
	assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
}

static void test_read_and_empty(void **state)
{
	uint64_t keys[ROOM];
	uint32_t values[ROOM], count = 99;

	if (fd < 0)
		skip();
	assert_int_equal(map_batch_read(fd, keys, values, ROOM, &count), 0);
	assert_int_equal(count, 0);
	for (uint64_t i = 0; i < ROOM; i++)
		put(i, (uint32_t)i + 100);
	assert_int_equal(map_batch_read(fd, keys, values, ROOM, &count), 0);
	assert_int_equal(count, ROOM);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(values[i], keys[i] + 100);
	map_batch_empty(fd, sizeof(uint64_t), sizeof(uint32_t), ROOM);
	assert_int_equal(map_batch_read(fd, keys, values, ROOM, &count), 0);
	assert_int_equal(count, 0);
	/* Of nothing, nothing. */
	map_batch_empty(fd, sizeof(uint64_t), sizeof(uint32_t), ROOM);
}

/* On a failure the count is as before. */
static void test_failures(void **state)
{
	uint64_t keys[ROOM];
	uint32_t values[ROOM], count = 99;

	assert_int_equal(map_batch_read(fd, NULL, values, ROOM, &count), -ENOMEM);
	assert_int_equal(map_batch_read(fd, keys, NULL, ROOM, &count), -ENOMEM);
	assert_true(map_batch_read(-1, keys, values, ROOM, &count) < 0);
	assert_int_equal(count, 99);
}

UNIT_TESTS(map_batch)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read_and_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
