/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole maps in one call, on a map of the kernel's own; as root, else skipped. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/kernel/map_batch.h"

#define ROOM 8

static const struct map_sizes sizes = { sizeof(uint64_t), sizeof(uint32_t), ROOM };

static int fd;

static int setup(void **state)
{
	/*
	 * Four times the entered elements: an entry that another thread deletes is not free at
	 * once.
	 */
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, "batch", sizeof(uint64_t), sizeof(uint32_t),
			    4 * ROOM, NULL);
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

/* Reads the map in place of the last reading. Returns the count. */
static uint32_t read_all(uint64_t **keys, uint32_t **values)
{
	uint32_t count = 99;

	free(*keys);
	free(*values);
	assert_int_equal(map_batch_read(fd, &sizes, keys, values, &count), 0);
	assert_non_null(*keys);
	assert_non_null(*values);
	return count;
}

static void test_read_and_empty(void **state)
{
	uint64_t *keys = NULL;
	uint32_t *values = NULL;

	if (fd < 0)
		skip();
	assert_int_equal(read_all(&keys, &values), 0);
	for (uint64_t i = 0; i < ROOM; i++)
		put(i, (uint32_t)i + 100);
	assert_int_equal(read_all(&keys, &values), ROOM);
	for (uint32_t i = 0; i < ROOM; i++)
		assert_int_equal(values[i], keys[i] + 100);
	map_batch_empty(fd, &sizes);
	assert_int_equal(read_all(&keys, &values), 0);
	/* Of nothing, nothing. */
	map_batch_empty(fd, &sizes);
	free(keys);
	free(values);
}

/* On a failure all is as before. */
static void test_failures(void **state)
{
	uint64_t *keys = NULL;
	uint32_t *values = NULL, count = 99;

	assert_true(map_batch_read(-1, &sizes, &keys, &values, &count) < 0);
	assert_null(keys);
	assert_null(values);
	assert_int_equal(count, 99);
}

static void test_clear(void **state)
{
	int trie, r;
	uint32_t value = 1;

	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	struct {
		uint32_t bits;
		char name[12];
	} key = { 0 };

	if (fd < 0)
		skip();
	assert_int_equal(map_batch_clear(fd, sizeof(uint64_t)), 0);
	for (uint64_t i = 0; i < ROOM; i++)
		put(i, 1);
	assert_int_equal(map_batch_clear(fd, sizeof(uint64_t)), 0);
	assert_int_equal(bpf_map_get_next_key(fd, NULL, &(uint64_t){ 0 }), -ENOENT);
	trie = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "trie", sizeof(key), sizeof(value), ROOM,
			      &options);
	assert_true(trie >= 0);
	for (uint32_t i = 0; i < ROOM; i++) {
		key.bits = 8 * i;
		memset(key.name, 'a', i);
		assert_int_equal(bpf_map_update_elem(trie, &key, &value, BPF_ANY), 0);
	}
	assert_int_equal(map_batch_clear(trie, sizeof(key)), 0);
	r = bpf_map_get_next_key(trie, NULL, &key);
	assert_int_equal(r, -ENOENT);
	close(trie);
	assert_int_equal(map_batch_clear(-1, sizeof(key)), -EBADF);
}

static void *delete_too(void *context)
{
	const bool *ends = context;

	while (!__atomic_load_n(ends, __ATOMIC_ACQUIRE))
		for (uint64_t i = 0; i < ROOM; i++)
			bpf_map_delete_elem(fd, &i);
	return NULL;
}

/* Processes that end while the maps are cleared: programs delete the same entries. */
static void test_clear_beside_another(void **state)
{
	bool ends = false;
	pthread_t other;

	if (fd < 0)
		skip();
	assert_int_equal(pthread_create(&other, NULL, delete_too, &ends), 0);
	for (size_t n = 0; n < 2000; n++) {
		for (uint64_t i = 0; i < ROOM; i++)
			put(i, 1);
		assert_int_equal(map_batch_clear(fd, sizeof(uint64_t)), 0);
		assert_int_equal(bpf_map_get_next_key(fd, NULL, &(uint64_t){ 0 }), -ENOENT);
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELEASE);
	pthread_join(other, NULL);
}

UNIT_TESTS(map_batch)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_clear, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clear_beside_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read_and_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
