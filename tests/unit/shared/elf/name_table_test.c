/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/elf/name_table.h"
#include "shared/tools/macro.h"

static const char strings[] = "\0read\0__read\0write\0label\0inner";

#define KEPT_MAX (64u << 20) /* bytes */

enum { READ = 1, LOW_READ = 6, WRITE = 13, LABEL = 19, INNER = 25 };

static int build_table(struct name_table_entry *entries, size_t count, const char *data,
		       size_t bytes, struct name_table *ret_names)
{
	const struct name_table_texts texts = {
		.strings = data,
		.bytes = bytes,
		.parts = 1,
		.kept_max = KEPT_MAX,
	};

	return name_table_build(entries, count, &texts, ret_names);
}

static const char *find_name(const struct name_table *n, uint32_t key)
{
	ptrdiff_t i = name_table_find(n, key);

	return i < 0 ? "" : name_table_text(n, (size_t)i);
}

static void test_bounds(void **state)
{
	struct name_table_entry entries[] = {
		{ .key = 300, .size = 10, .text = WRITE },
		{ .key = 100, .size = 20, .text = READ },
	};
	struct name_table n;

	assert_int_equal(build_table(entries, 2, strings, sizeof(strings), &n), 0);
	assert_string_equal(find_name(&n, 99), "");
	assert_string_equal(find_name(&n, 100), "read");
	assert_string_equal(find_name(&n, 119), "read");
	assert_string_equal(find_name(&n, 120), "");
	assert_string_equal(find_name(&n, 309), "write");
	assert_string_equal(find_name(&n, 310), "");
	assert_string_equal(find_name(&n, UINT32_MAX), "");
	assert_int_equal(name_table_after(&n, 0), 0);
	assert_int_equal(name_table_after(&n, 99), 0);
	assert_int_equal(name_table_after(&n, 100), 1);
	assert_int_equal(name_table_after(&n, 299), 1);
	assert_int_equal(name_table_after(&n, 300), -1);
	assert_int_equal(name_table_after(&n, UINT32_MAX), -1);
	name_table_done(&n);
}

static void test_best_of_aliases(void **state)
{
	struct name_table_entry entries[] = {
		{ .key = 100,
		  .size = 20,
		  .text = LOW_READ,
		  .rank = name_table_rank("__read", 1, 1, 1) },
		{ .key = 100, .size = 20, .text = READ, .rank = name_table_rank("read", 1, 1, 1) },
		{ .key = 100,
		  .size = 20,
		  .text = WRITE,
		  .rank = name_table_rank("write", 0, 1, 1) },
	};
	struct name_table n;

	assert_int_equal(build_table(entries, 3, strings, sizeof(strings), &n), 0);
	assert_int_equal(n.count, 1);
	assert_string_equal(find_name(&n, 100), "read");
	name_table_done(&n);
}

/* Of equally good names the order of the symbols, which each build has anew, chooses none. */
static void test_order_chooses_no_alias(void **state)
{
	static const char names[] = "\0fmodf32x\0fmod\0sinf\0sinl";
	static const uint32_t orders[][4] = {
		{ 1, 10, 15, 20 }, { 10, 1, 20, 15 }, { 20, 15, 10, 1 }, { 15, 20, 1, 10 }
	};

	for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
		struct name_table_entry entries[4];
		struct name_table n;

		for (size_t k = 0; k < 4; k++)
			entries[k] = (struct name_table_entry){
				.key = orders[i][k] > 10 ? 200 : 100,
				.size = 20,
				.text = orders[i][k],
				.rank = name_table_rank(names + orders[i][k], 1, 1, 1),
			};
		assert_int_equal(build_table(entries, 4, names, sizeof(names), &n), 0);
		assert_string_equal(find_name(&n, 100), "fmod");
		assert_string_equal(find_name(&n, 200), "sinf");
		name_table_done(&n);
	}
}

static void test_open_ends_at_next(void **state)
{
	struct name_table_entry entries[] = {
		{ .key = 100, .size = 1000, .text = READ, .open = 1 },
		{ .key = 150, .size = 20, .text = WRITE },
		{ .key = 200, .size = 30, .text = LOW_READ, .open = 1 },
	};
	struct name_table n;

	assert_int_equal(build_table(entries, 3, strings, sizeof(strings), &n), 0);
	assert_string_equal(find_name(&n, 149), "read");
	assert_string_equal(find_name(&n, 150), "write");
	assert_string_equal(find_name(&n, 170), "");
	assert_string_equal(find_name(&n, 229), "__read");
	assert_string_equal(find_name(&n, 230), "");
	name_table_done(&n);
}

static void test_nested(void **state)
{
	struct name_table_entry entries[] = {
		{ .key = 100, .size = 100, .text = READ },
		{ .key = 120, .size = 10, .text = INNER },
		{ .key = 150, .size = 50, .text = LABEL, .open = 1 },
	};
	struct name_table n;

	assert_int_equal(build_table(entries, 3, strings, sizeof(strings), &n), 0);
	assert_int_equal(n.count, 2);
	assert_string_equal(find_name(&n, 125), "inner");
	assert_string_equal(find_name(&n, 130), "read");
	assert_string_equal(find_name(&n, 160), "read");
	name_table_done(&n);
}

static void test_many_against_linear(void **state)
{
	enum { COUNT = 5000 };
	struct name_table_entry *entries = calloc(COUNT, sizeof(*entries));
	uint64_t x = 1;
	struct name_table n;

	assert_non_null(entries);
	for (size_t i = 0; i < COUNT; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		entries[i] = (struct name_table_entry){ .key = (uint32_t)(x >> 32) & ~0xffU,
							.size = 0x80,
							.text = READ };
	}
	assert_int_equal(build_table(entries, COUNT, strings, sizeof(strings), &n), 0);
	for (size_t i = 1; i < n.count; i++)
		assert_true(n.keys[i - 1] < n.keys[i]);
	for (size_t i = 0; i < n.count; i++) {
		assert_int_equal(name_table_find(&n, n.keys[i]), i);
		assert_int_equal(name_table_find(&n, n.keys[i] + 0x7f), i);
		assert_int_equal(name_table_find(&n, n.keys[i] + 0x80), -1);
	}
	name_table_done(&n);
	free(entries);
}

/* `count` entries of keys that differ in the bits of `mask` only; names distinguish equal keys. */
static void check_order(size_t count, uint32_t mask, bool sorted)
{
	struct name_table_entry *entries = calloc(count, sizeof(*entries));
	uint32_t state = 1, last = 0;
	struct name_table n;

	assert_non_null(entries);
	for (size_t i = 0; i < count; i++) {
		state = state * 1664525 + 1013904223;
		entries[i] = (struct name_table_entry){
			.key = sorted ? (uint32_t)i : 0x40000001u ^ ((state ^ state >> 16) & mask),
			.size = 1,
			.text = READ,
		};
	}
	for (size_t i = 1; i < count; i += 2) {
		entries[i].key = entries[i - 1].key; /* the first of equals stays */
		entries[i].text = WRITE;
	}
	assert_int_equal(build_table(entries, count, strings, sizeof(strings), &n), 0);
	assert_true(n.count > 0 && n.count <= (count + 1) / 2);
	for (size_t i = 0; i < n.count; i++) {
		assert_true(i == 0 || n.keys[i] > last);
		assert_string_equal(name_table_text(&n, i), "read");
		last = n.keys[i];
	}
	name_table_done(&n);
	free(entries);
}

/* Short and long tables, and keys of which few or many bits differ, low or high ones. */
static void test_order(void **state)
{
	static const size_t counts[] = { 2, 3, 300, 4095, 4096, 30000 };
	static const uint32_t masks[] = { 1, 0xff, 0x1ff0, 0xfffff, 0x80000000, 0xffffff00, ~0u };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(masks); k++)
			check_order(counts[i], masks[k], false);
		check_order(counts[i], 0, true);
	}
}

static void test_walls(void **state)
{
	struct name_table_entry beyond = { .key = 1, .size = 1, .text = sizeof(strings) };
	char *name = malloc(2 * NAME_TABLE_TEXT_BYTES);
	struct name_table_entry longest = { .key = 1, .size = 1 };
	struct name_table_entry *many = calloc(KEPT_MAX / NAME_TABLE_TEXT_BYTES + 1, sizeof(*many));
	struct name_table n = { .count = 77 };

	assert_non_null(name);
	assert_non_null(many);
	memset(name, 'x', 2 * NAME_TABLE_TEXT_BYTES);
	name[2 * NAME_TABLE_TEXT_BYTES - 1] = '\0';
	assert_int_equal(build_table(&beyond, 1, strings, sizeof(strings), &n), -EINVAL);
	assert_int_equal(
		build_table(&beyond, NAME_TABLE_COUNT_MAX + 1, strings, sizeof(strings), &n),
		-EFBIG);
	for (uint32_t i = 0; i < KEPT_MAX / NAME_TABLE_TEXT_BYTES + 1; i++)
		many[i] = (struct name_table_entry){ .key = i, .size = 1 };
	assert_int_equal(build_table(many, KEPT_MAX / NAME_TABLE_TEXT_BYTES + 1, name,
				     2 * NAME_TABLE_TEXT_BYTES, &n),
			 -EFBIG);
	assert_int_equal(n.count, 77);
	assert_int_equal(build_table(&longest, 1, name, 2 * NAME_TABLE_TEXT_BYTES, &n), 0);
	assert_int_equal(strlen(name_table_text(&n, 0)), NAME_TABLE_TEXT_BYTES - 1);
	name_table_done(&n);
	free(many);
	free(name);
}

static void test_empty(void **state)
{
	struct name_table n;

	assert_int_equal(build_table(NULL, 0, NULL, 0, &n), 0);
	assert_int_equal(name_table_find(&n, 0), -1);
	name_table_done(&n);
}

UNIT_TESTS(name_table)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_best_of_aliases),
		cmocka_unit_test(test_order_chooses_no_alias),
		cmocka_unit_test(test_open_ends_at_next),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_many_against_linear),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_walls),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
