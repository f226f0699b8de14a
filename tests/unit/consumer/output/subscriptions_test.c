/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/output/subscriptions.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"

static struct subscriptions *s;
static struct jsonw w;

static int setup(void **state)
{
	jsonw_init(&w, 8u << 20);
	return subscriptions_new(&s);
}

static int teardown(void **state)
{
	jsonw_done(&w);
	subscriptions_free(s);
	return 0;
}

static void put(const char *lines, uint64_t n)
{
	subscriptions_put(s, lines, strlen(lines), n);
}

static void takes(uint64_t id, const char *expected)
{
	jsonw_reset(&w);
	assert_int_equal(subscriptions_take(s, 7, id, clock_mono_ns(), &w), 0);
	assert_int_equal(w.bytes, strlen(expected));
	assert_memory_equal(w.data, expected, w.bytes);
}

static void test_each_receives_later_lines(void **state)
{
	uint64_t a, b;

	put("{\"n\":0}\n", 1);
	assert_int_equal(subscriptions_open(s, 7, clock_mono_ns(), &a), 0);
	put("{\"n\":1}\n{\"n\":2}\n", 2);
	assert_int_equal(subscriptions_open(s, 7, clock_mono_ns(), &b), 0);
	put("{\"n\":3}\n", 1);
	takes(a, "\"lines\":[{\"n\":1},{\"n\":2},{\"n\":3}],\"omitted\":0,\"more\":false");
	takes(a, "\"lines\":[],\"omitted\":0,\"more\":false");
	takes(b, "\"lines\":[{\"n\":3}],\"omitted\":0,\"more\":false");
	assert_int_equal(subscriptions_take(s, 7, 0, clock_mono_ns(), &w), -ENOENT);
	assert_int_equal(subscriptions_take(s, 7, 99, clock_mono_ns(), &w), -ENOENT);
}

/* What has no room is counted, and the lines before it stay. */
static void test_memory_has_a_wall(void **state)
{
	const size_t line_bytes = 1000;
	uint64_t id, n = 0, lines = SUBSCRIPTIONS_BYTES / line_bytes;
	char line[1001];
	bool more = true;

	memset(line, '1', sizeof(line));
	strcpy(line + line_bytes - 1, "\n");
	assert_int_equal(subscriptions_open(s, 7, clock_mono_ns(), &id), 0);
	for (uint64_t i = 0; i < lines + 3; i++)
		put(line, 1);
	for (unsigned int round = 0; more; round++) {
		assert_true(round < 10);
		jsonw_reset(&w);
		assert_int_equal(subscriptions_take(s, 7, id, clock_mono_ns(), &w), 0);
		assert_true(w.bytes < SUBSCRIPTIONS_TAKE + 2 * line_bytes);
		for (size_t i = 0; i < w.bytes; i++)
			n += w.data[i] == ',' || w.data[i] == '[';
		n -= 2;
		w.data[w.bytes - 1] = 0;
		more = strstr(w.data, "\"more\":tru");
		if (!round)
			assert_non_null(strstr(w.data, "\"omitted\":3,"));
	}
	assert_int_equal(n, lines);
}

static void test_there_are_few(void **state)
{
	uint64_t id;

	for (int i = 0; i < SUBSCRIPTIONS_MAX; i++)
		assert_int_equal(subscriptions_open(s, 7, clock_mono_ns(), &id), 0);
	assert_int_equal(subscriptions_open(s, 7, clock_mono_ns(), &id), -EBUSY);
	/* No request for 10 s: all are given up. */
	assert_int_equal(
		subscriptions_open(s, 7, clock_mono_ns() + SUBSCRIPTIONS_NS + 1000000000, &id), 0);
}

static void test_forgotten_ones_cost_no_memory(void **state)
{
	uint64_t id;

	assert_int_equal(
		subscriptions_open(s, 7, clock_mono_ns() - SUBSCRIPTIONS_NS - 1000000000, &id), 0);
	put("{}\n", 1);
	assert_int_equal(subscriptions_take(s, 7, id, clock_mono_ns(), &w), -ENOENT);
}

/* A client that disappears holds no place, and no client gets another one's lines. */
static void test_ends_with_its_connection(void **state)
{
	uint64_t a, b, c;

	assert_int_equal(subscriptions_open(s, 1, clock_mono_ns(), &a), 0);
	assert_int_equal(subscriptions_open(s, 2, clock_mono_ns(), &b), 0);
	assert_int_equal(subscriptions_open(s, 1, clock_mono_ns(), &c), 0);
	assert_int_equal(subscriptions_take(s, 2, a, clock_mono_ns(), &w), -ENOENT);
	subscriptions_close(s, 1);
	assert_int_equal(subscriptions_take(s, 1, a, clock_mono_ns(), &w), -ENOENT);
	assert_int_equal(subscriptions_take(s, 1, c, clock_mono_ns(), &w), -ENOENT);
	assert_int_equal(subscriptions_take(s, 2, b, clock_mono_ns(), &w), 0);
	for (int i = 0; i < SUBSCRIPTIONS_MAX - 1; i++)
		assert_int_equal(subscriptions_open(s, 3, clock_mono_ns(), &a), 0);
	assert_int_equal(subscriptions_open(s, 3, clock_mono_ns(), &a), -EBUSY);
	subscriptions_close(s, 3);
	subscriptions_close(s, 4);
	assert_int_equal(subscriptions_open(s, 3, clock_mono_ns(), &a), 0);
}

UNIT_TESTS(subscriptions)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(each_receives_later_lines),
		TEST(memory_has_a_wall),
		TEST(there_are_few),
		TEST(forgotten_ones_cost_no_memory),
		TEST(ends_with_its_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
