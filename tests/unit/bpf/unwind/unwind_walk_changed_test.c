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

#include "bpf/unwind/unwind_walk.h"

#include "tests/unit/consumer/unwind/testing/stack_walk_testing.h"

#define TEXT	    0x100000u
#define PAGES	    4
#define FILE_NUMBER 0x600df11e00000001u

/* The whole file is mapped as it was. */
static const struct mapped_file_found as_it_was = { .start = TEXT,
						    .end = TEXT + PAGES * 4096,
						    .number = FILE_NUMBER };

static struct unwind_process process;
static struct unwind_ranges ranges;

/* A range of one file, every frame of which takes 8 bytes. */
static int setup(void **state)
{
	static const struct unwind_rule next = { .cfa = UNWIND_CFA_SP, .cfa_offset = 8 };
	static const uint32_t pages[2] = { UNWIND_PAGE(0, 1), UNWIND_PAGE(0, 1) };
	struct unwind_row row = { 0 };

	assert_int_equal(unwind_rules_init(&pool.rules), 0);
	assert_int_equal(unwind_rules_add(&pool.rules, next, UNWIND_RULES_MAX, &row.rule), 0);
	only.place = (struct unwind_place){ .row_count = 1, .page_count = 2 };
	only.place.rows = pool_append(&row, sizeof(row));
	only.place.pages = pool_append(pages, sizeof(pages));
	process = (struct unwind_process){ .published = 7 };
	ranges = (struct unwind_ranges){ .table_generation = 7, .count = 1 };
	ranges.ranges[0] = UNWIND_RANGE(TEXT / 4096, PAGES);
	ranges.checks[0] = FILE_NUMBER;
	process.mappings[0] = (struct unwind_mapping){ .base = TEXT, .kind = UNWIND_KIND_ROWS };
	taking_cache = (struct unwind_cache){ 0 };
	taking_changes = 0;
	mapped_file_there = as_it_was;
	mapped_file_searches = 0;
	return 0;
}

static int teardown(void **state)
{
	unwind_rules_done(&pool.rules);
	free(pool.elements);
	pool.elements = NULL;
	pool.count = 0;
	return 0;
}

/* Walks a stack of three frames; returns how it ended. */
static enum unwind_end take(struct taken *t)
{
	static uint64_t s[] = { TEXT + 0x20, TEXT + 0x40, 0 };
	const struct unwind_frame from = { .pc = TEXT + 8, .sp = (uintptr_t)s, .exact = 1 };

	taking(&from, &ranges, &process, NULL, t);
	return t->end;
}

/* Nothing is walked by the rows of the file that was there, whether they are cached or not. */
static void test_changed(void **state)
{
	struct taken t;

	for (int i = 0; i < 2; i++) { /* by the rows, then by the cache */
		assert_int_equal(take(&t), UNWIND_END_NO_CALLER);
		assert_int_equal(t.count, 3);
		assert_int_equal(t.frames[2], TEXT + 0x40);
	}
	mapped_file_there.number = FILE_NUMBER + 2;
	assert_int_equal(take(&t), UNWIND_END_CHANGED);
	assert_int_equal(t.count, 1); /* where the thread was running, whatever that is */
	mapped_file_there.number = 0; /* memory */
	assert_int_equal(take(&t), UNWIND_END_CHANGED);
	mapped_file_there.end = 0; /* not found: no proof of a change */
	assert_int_equal(take(&t), UNWIND_END_NO_CALLER);
	assert_int_equal(t.count, 3);
}

/* A file in the place of memory, as of code that was compiled at run time. */
static void test_memory(void **state)
{
	struct taken t;

	ranges.checks[0] = 0;
	assert_int_equal(take(&t), UNWIND_END_CHANGED);
	mapped_file_there.number = 0;
	assert_int_equal(take(&t), UNWIND_END_NO_CALLER);
}

/* What was checked is not checked again before the memory map changes; what was not, is. */
static void test_checked_once(void **state)
{
	static const struct {
		uint64_t changes;
		uint64_t number;
		enum unwind_end end;
	} turns[] = {
		{ 5, FILE_NUMBER + 2, UNWIND_END_CHANGED },
		{ 5, FILE_NUMBER, UNWIND_END_NO_CALLER },
		{ 5, FILE_NUMBER + 2, UNWIND_END_NO_CALLER },
		{ 6, FILE_NUMBER + 2, UNWIND_END_CHANGED },
		{ 6, FILE_NUMBER, UNWIND_END_NO_CALLER },
		{ 0, FILE_NUMBER + 2, UNWIND_END_CHANGED },
		{ 6, FILE_NUMBER + 2, UNWIND_END_CHANGED },
	};
	struct taken t;

	for (size_t i = 0; i < ARRAY_SIZE(turns); i++) {
		taking_changes = turns[i].changes;
		mapped_file_there.number = turns[i].number;
		assert_int_equal(take(&t), turns[i].end);
	}
	taking_changes = 6;
	mapped_file_there.number = FILE_NUMBER;
	assert_int_equal(take(&t), UNWIND_END_NO_CALLER);
	/* Another table: the same place may have another file there. */
	process.published = ranges.table_generation = 8;
	mapped_file_there.number = FILE_NUMBER + 2;
	assert_int_equal(take(&t), UNWIND_END_CHANGED);
}

/* A part of a range proves nothing about the rest: another file may be mapped over one page. */
static void test_split(void **state)
{
	static const struct mapped_file_found parts[] = {
		{ TEXT, TEXT + 4096, FILE_NUMBER },
		{ TEXT - 4096, TEXT + (PAGES - 1) * 4096, FILE_NUMBER },
	};
	struct taken t;

	taking_changes = 5;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		mapped_file_there = parts[i];
		mapped_file_searches = 0;
		assert_int_equal(take(&t), UNWIND_END_NO_CALLER);
		assert_int_equal(mapped_file_searches, 3); /* each frame by its own address */
		mapped_file_there.number = FILE_NUMBER + 2;
		assert_int_equal(take(&t), UNWIND_END_CHANGED);
	}
	mapped_file_there = as_it_was;
	mapped_file_there.start -= 4096; /* joined with the mapping before */
	mapped_file_searches = 0;
	assert_int_equal(take(&t), UNWIND_END_NO_CALLER);
	assert_int_equal(take(&t), UNWIND_END_NO_CALLER);
	assert_int_equal(mapped_file_searches, 1);
}

UNIT_TESTS(unwind_walk_changed)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_checked_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_split, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
