/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/jit/perf_map.h"
#include "shared/tools/cleanup.h"

static struct jit_map *parse(const char *text)
{
	struct jit_map *map;

	assert_int_equal(perf_map_parse(text, strlen(text), SIZE_MAX, &map), 0);
	return map;
}

static void expect(const struct jit_map *map, uint64_t address, const char *name, uint64_t start)
{
	uint64_t found = 0;
	const char *fn = NULL;
	enum reason reason = perf_map_find(map, address, &fn, &found);

	if (!name) {
		assert_int_equal(reason, REASON_NO_SYMBOL);
		return;
	}
	assert_int_equal(reason, REASON_NONE);
	assert_string_equal(fn, name);
	assert_int_equal(found, start);
}

/* Expects no name, because the code at the address changed. */
static void expect_reused(const struct jit_map *map, uint64_t address)
{
	uint64_t start;
	const char *fn = NULL;

	assert_int_equal(perf_map_find(map, address, &fn, &start), REASON_CODE_REUSED);
	assert_null(fn);
}

static void test_lines(void **state)
{
	struct jit_map *map = parse("7f0000001000 80 LazyCompile:*foo /app/index.js:10\n"
				    "0x7F0000002000 0x10 Builtin:Call");

	assert_true(perf_map_bytes(map) > 0);
	expect(map, 0x7f0000000fff, NULL, 0);
	expect(map, 0x7f0000001000, "LazyCompile:*foo /app/index.js:10", 0x7f0000001000);
	expect(map, 0x7f000000107f, "LazyCompile:*foo /app/index.js:10", 0x7f0000001000);
	expect(map, 0x7f0000001080, NULL, 0);
	expect(map, 0x7f000000200f, "Builtin:Call", 0x7f0000002000);
	expect(map, UINT64_MAX, NULL, 0);
	perf_map_free(map);
	map = parse("");
	expect(map, 1, NULL, 0);
	perf_map_free(map);
}

/* Code moves and places are used again: the last line about an address counts. */
static void test_newest(void **state)
{
	struct jit_map *map = parse("1000 100 old\n1000 40 new\n1020 200 newest\n");

	expect(map, 0x1000, "new", 0x1000);
	expect(map, 0x1030, "newest", 0x1020);
	expect(map, 0x1100, "newest", 0x1020);
	perf_map_free(map);
}

/* Where small functions have lived, a large new one covers their entries, however many they are. */
static void test_newest_above_many(void **state)
{
	_cleanup_free_ char *text = malloc(1 << 16);
	struct jit_map *map;
	size_t at = 0;

	assert_non_null(text);
	for (unsigned int i = 0; i < 200; i++)
		at += (size_t)snprintf(text + at, (1 << 16) - at, "%x 20 small_%u\n",
				       0x100000 + i * 0x20, i);
	snprintf(text + at, (1 << 16) - at, "100000 4000 living_now\n");
	map = parse(text);
	for (uint64_t address = 0x100000; address < 0x104000; address += 0x10)
		expect(map, address, "living_now", 0x100000);
	expect(map, 0x104000, NULL, 0);
	perf_map_free(map);
}

#define RANDOM_LINES 400
#define RANDOM_SPACE 0x800

/* Each address has the function of the last line that holds it, as a search of all lines finds. */
static void test_newest_of_random(void **state)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		char text[RANDOM_LINES * 24], name[16];
		uint64_t starts[RANDOM_LINES], sizes[RANDOM_LINES], random = seed;
		struct jit_map *map;
		size_t at = 0;

		for (unsigned int i = 0; i < RANDOM_LINES; i++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			starts[i] = 0x10000 + (random >> 33) % RANDOM_SPACE;
			sizes[i] = 1 + (random >> 48) % (i % 7 ? 16 : 300);
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%" PRIx64 " %" PRIx64 " f%u\n", starts[i], sizes[i],
					       i);
		}
		map = parse(text);
		for (uint64_t a = 0xfff0; a < 0x10000 + RANDOM_SPACE + 400; a++) {
			int i = RANDOM_LINES - 1;

			while (i >= 0 && a - starts[i] >= sizes[i])
				i--;
			snprintf(name, sizeof(name), "f%d", i);
			expect(map, a, i < 0 ? NULL : name, i < 0 ? 0 : starts[i]);
		}
		perf_map_free(map);
	}
}

/* Parses a map of which the lines up to the mark "|" were there before the samples. */
static struct jit_map *parse_marked(const char *before, const char *after)
{
	char text[1024];
	struct jit_map *map;

	snprintf(text, sizeof(text), "%s%s", before, after);
	assert_int_equal(perf_map_parse(text, strlen(text), strlen(before), &map), 0);
	return map;
}

/* A sample at an address that got another function meanwhile may be of either. */
static void test_reused(void **state)
{
	struct jit_map *map = parse_marked("1000 100 first\n", "1000 100 second\n");

	expect_reused(map, 0x1000);
	expect_reused(map, 0x10ff);
	perf_map_free(map);
	/* Both lines are older than the samples, or the address was free. */
	map = parse_marked("1000 100 first\n1000 100 second\n", "2000 10 third\n");
	expect(map, 0x1000, "second", 0x1000);
	expect(map, 0x2000, "third", 0x2000);
	perf_map_free(map);
	/* Of the older function a part is left. */
	map = parse_marked("1000 100 first\n", "1020 20 second\n");
	expect(map, 0x1010, "first", 0x1000);
	expect_reused(map, 0x1020);
	expect_reused(map, 0x103f);
	expect(map, 0x1040, "first", 0x1000);
	perf_map_free(map);
	/* The newer one is longer than the older one, which an even older one hides from. */
	map = parse_marked("1000 10 first\n1000 20 second\n", "1000 40 third\n");
	expect_reused(map, 0x1000);
	expect_reused(map, 0x101f);
	expect(map, 0x1020, "third", 0x1000);
	perf_map_free(map);
	/* The same function again. */
	map = parse_marked("1000 100 first\n", "1000 100 first\n");
	expect(map, 0x1080, "first", 0x1000);
	perf_map_free(map);
	/* Two new ones; a line that the mark cuts is new. */
	map = parse_marked("", "1000 100 first\n1000 100 second\n");
	expect_reused(map, 0x1000);
	perf_map_free(map);
	map = parse_marked("1000 100 first\n1000 100 sec", "ond\n");
	expect_reused(map, 0x1000);
	perf_map_free(map);
}

/* Each address has a name only where a search of all lines finds that no sample can be of another.
 */
static void test_reused_of_random(void **state)
{
	for (unsigned int seed = 1; seed <= 20; seed++) {
		char text[RANDOM_LINES * 24];
		uint64_t starts[RANDOM_LINES], sizes[RANDOM_LINES], random = seed, begin;
		size_t at = 0, old_bytes = 0;
		struct jit_map *map;

		for (int i = 0; i < RANDOM_LINES; i++) {
			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			starts[i] = 0x10000 + (random >> 33) % RANDOM_SPACE;
			sizes[i] = 1 + (random >> 48) % (i % 7 ? 16 : 300);
			if (i == RANDOM_LINES / 2)
				old_bytes = at;
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%" PRIx64 " %" PRIx64 " f%u\n", starts[i], sizes[i],
					       i);
		}
		assert_int_equal(perf_map_parse(text, at, old_bytes, &map), 0);
		for (uint64_t a = 0xfff0; a < 0x10000 + RANDOM_SPACE + 400; a++) {
			enum reason want = REASON_NO_SYMBOL;
			const char *fn;
			int holders = 0;

			for (int i = RANDOM_LINES - 1; i >= 0; i--) {
				if (a - starts[i] >= sizes[i])
					continue;
				want = ++holders > 1 ? REASON_CODE_REUSED : REASON_NONE;
				if (holders > 1 || i < RANDOM_LINES / 2)
					break;
			}
			assert_int_equal(perf_map_find(map, a, &fn, &begin), want);
		}
		perf_map_free(map);
	}
}

static void test_malformed(void **state)
{
	static const char text[] = "\n \n1\n1 2\n1 2 \nzz 1 a\n1 zz a\n"
				   "11112222333344445 1 a\nffffffffffffffff 2 a\n1 0 a\n-1 1 a\n"
				   "5000 10 good\n";
	/* What the lines would hold if one were taken, whole, cut or wrapped. */
	static const uint64_t refused[] = {
		0, 1, 2, 0x1111222233334444, 0x1112222333344445, UINT64_MAX - 1, UINT64_MAX
	};
	struct jit_map *map = parse(text);

	expect(map, 0x5000, "good", 0x5000);
	expect(map, 0x5010, NULL, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		expect(map, refused[i], NULL, 0);
	perf_map_free(map);
}

static void test_walls(void **state)
{
	size_t lines = PERF_MAP_SYMBOLS_MAX + 1000, space = lines * 20 + 2 * PERF_MAP_NAME_BYTES;
	uint64_t oldest = 0x1000 + lines - (PERF_MAP_SYMBOLS_MAX - 1);
	_cleanup_free_ char *text = malloc(space);
	struct jit_map *map;
	const char *fn = NULL;
	uint64_t start;
	size_t at = 0;

	assert_non_null(text);
	for (size_t i = 0; i < lines; i++)
		at += (size_t)snprintf(text + at, space - at, "%zx 1 a\n", 0x1000 + i);
	at += (size_t)snprintf(text + at, space - at, "10 1 ");
	memset(text + at, 'x', PERF_MAP_NAME_BYTES + 100);
	at += PERF_MAP_NAME_BYTES + 100;
	assert_int_equal(perf_map_parse(text, at, at, &map), 0);
	/* The oldest are left out: the long name and all but one of the newest lines are kept. */
	assert_int_equal(perf_map_find(map, 0x1000, &fn, &start), REASON_PERF_MAP_CUT);
	assert_int_equal(perf_map_find(map, oldest - 1, &fn, &start), REASON_PERF_MAP_CUT);
	expect(map, oldest, "a", oldest);
	expect(map, 0x1000 + lines - 1, "a", 0x1000 + lines - 1);
	assert_int_equal(perf_map_find(map, 0x10, &fn, &start), REASON_NONE);
	assert_int_equal(strlen(fn), PERF_MAP_NAME_BYTES - 1);
	perf_map_free(map);
}

UNIT_TESTS(perf_map)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_newest_above_many),
		cmocka_unit_test(test_newest_of_random),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_reused),
		cmocka_unit_test(test_reused_of_random),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_walls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
