/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's walk on the host, where another file has come to lie in a file's place. */
#include "tests/unit/runner/unit.h"

#include "shared/tools/macro.h"
#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"

static struct unwind_file only;

static const struct unwind_file *unwind_file_at(__u32 index)
{
	return index == 0 ? &only : NULL;
}

#include "tests/unit/consumer/unwind/testing/mapped_file_testing.h"

#include "bpf/unwind_walk.h"

#include "tests/unit/consumer/unwind/testing/stack_walk_testing.h"

#define WORD	0x600df11eu
#define WORD_AT 16 /* in the file's first page; its text is the second */

static _Alignas(4096) uint8_t image[2 * 4096];

static void put_word(uint32_t word)
{
	memcpy(image + WORD_AT, &word, sizeof(word));
}

/* A file in this process, every frame of which takes 8 bytes. */
static uint64_t map_file(struct unwind_ranges *r, struct unwind_process *p)
{
	static const struct unwind_rule next = { .cfa = UNWIND_CFA_SP, .cfa_offset = 8 };
	static const uint32_t pages[2] = { UNWIND_PAGE(0, 1), UNWIND_PAGE(0, 1) };
	uint64_t text = (uintptr_t)image + 4096;
	struct unwind_row row = { 0 };

	assert_int_equal(unwind_rules_init(&pool.rules), 0);
	assert_int_equal(unwind_rules_add(&pool.rules, next, UNWIND_RULES_MAX, &row.rule), 0);
	only.place = (struct unwind_place){ .row_count = 1, .page_count = 2 };
	only.place.rows = pool_append(&row, sizeof(row));
	only.place.pages = pool_append(pages, sizeof(pages));
	put_word(WORD);
	p->published = r->table_generation = 7;
	r->count = 1;
	r->ranges[0] = UNWIND_RANGE(text / 4096, 1);
	r->checks[0] = UNWIND_CHECK(4096 - WORD_AT, WORD);
	p->mappings[0] = (struct unwind_mapping){ .base = text, .kind = UNWIND_KIND_ROWS };
	return text;
}

/* Nothing is walked by the rows of what was there, whether they are remembered or not. */
static void test_changed(void **state)
{
	static struct unwind_process process;
	static struct unwind_ranges ranges;
	uint64_t text = map_file(&ranges, &process);
	uint64_t s[] = { text + 0x20, text + 0x40, 0 };
	struct unwind_frame from = { .pc = text + 8, .sp = (uintptr_t)s, .exact = 1 };
	struct taken t;

	for (int i = 0; i < 2; i++) { /* by the rows, then by the cache */
		taking(&from, &ranges, &process, NULL, &t);
		assert_int_equal(t.end, UNWIND_END_NO_CALLER);
		assert_int_equal(t.count, 3);
		assert_int_equal(t.frames[2], s[1]);
	}
	put_word(WORD + 1);
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_CHANGED);
	assert_int_equal(t.count, 1); /* where it was running, whatever that is */
	/* A word that cannot be read, or none at all: believed. */
	ranges.checks[0] = UNWIND_CHECK(UINT32_MAX & ~3u, WORD);
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_NO_CALLER);
	ranges.checks[0] = 0;
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_NO_CALLER);
	unwind_rules_done(&pool.rules);
	free(pool.elements);
	pool.elements = NULL;
	pool.count = 0;
}

/* What was checked is not looked at again before the memory map changes; what was not, is. */
static void test_checked_once(void **state)
{
	static struct unwind_process process;
	static struct unwind_ranges ranges;
	uint64_t text = map_file(&ranges, &process);
	uint64_t s[] = { text + 0x20, 0 };
	struct unwind_frame from = { .pc = text + 8, .sp = (uintptr_t)s, .exact = 1 };
	static const struct {
		uint64_t changes;
		uint32_t word;
		enum unwind_end end;
	} turns[] = {
		{ 5, WORD + 1, UNWIND_END_CHANGED },   { 5, WORD, UNWIND_END_NO_CALLER },
		{ 5, WORD + 1, UNWIND_END_NO_CALLER }, { 6, WORD + 1, UNWIND_END_CHANGED },
		{ 6, WORD, UNWIND_END_NO_CALLER },     { 0, WORD + 1, UNWIND_END_CHANGED },
		{ 6, WORD + 1, UNWIND_END_CHANGED },
	};
	struct taken t;

	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		taking_changes = turns[i].changes;
		put_word(turns[i].word);
		taking(&from, &ranges, &process, NULL, &t);
		assert_int_equal(t.end, turns[i].end);
	}
	taking_changes = 6;
	put_word(WORD);
	taking(&from, &ranges, &process, NULL, &t);
	/* Another table: the same place may have another file there. */
	process.published = ranges.table_generation = 8;
	put_word(WORD + 1);
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_CHANGED);
	taking_changes = 0;
	unwind_rules_done(&pool.rules);
	free(pool.elements);
	pool.elements = NULL;
	pool.count = 0;
}

/*
 * A word that was not resident at the filling: nothing is walked by the table but with the file of
 * then in its place, and the first such walk takes the word over.
 */
static void test_learnt_later(void **state)
{
	static struct unwind_process process;
	static struct unwind_ranges ranges;
	uint64_t text = map_file(&ranges, &process);
	uint64_t s[] = { text + 0x20, 0 };
	struct unwind_frame from = { .pc = text + 8, .sp = (uintptr_t)s, .exact = 1 };
	static const uint32_t file = 0xf11e0001, others[] = { 0, 0xf11e0003 };
	struct taken t;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		ranges.checks[0] = UNWIND_CHECK_LATER(4096 - WORD_AT, file);
		mapped_file_number = others[i];
		taking(&from, &ranges, &process, NULL, &t);
		assert_int_equal(t.end, UNWIND_END_CHANGED);
		assert_int_equal(ranges.checks[0], UNWIND_CHECK_LATER(4096 - WORD_AT, file));
	}
	/* Without the lock the file is believed, and no word: it may be the next file's. */
	mapped_file_number = file;
	mapped_file_busy = 1;
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_NO_CALLER);
	assert_int_equal(ranges.checks[0], UNWIND_CHECK_LATER(4096 - WORD_AT, file));
	mapped_file_busy = 0;
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_NO_CALLER);
	assert_int_equal(t.count, 2);
	assert_int_equal(ranges.checks[0], UNWIND_CHECK(4096 - WORD_AT, WORD));
	put_word(WORD + 1);
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_CHANGED);
	/* Still not resident: looked at anew each time. */
	ranges.checks[0] = UNWIND_CHECK_LATER(UINT32_MAX & ~3u, file);
	taking(&from, &ranges, &process, NULL, &t);
	assert_int_equal(t.end, UNWIND_END_NO_CALLER);
	assert_int_equal(ranges.checks[0], UNWIND_CHECK_LATER(UINT32_MAX & ~3u, file));
	unwind_rules_done(&pool.rules);
	free(pool.elements);
}

UNIT_TESTS(unwind_walk_changed)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_checked_once),
		cmocka_unit_test(test_learnt_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
