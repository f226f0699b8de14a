/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_walk_testing.h: a process of a few mappings for bpf/unwind/unwind_walk.h on the host: each
 * has a file of its own with rows that a test writes down, and the stack is the test's.
 */
#ifndef TROCAR_TESTS_UNIT_BPF_UNWIND_UNWIND_WALK_TESTING_H
#define TROCAR_TESTS_UNIT_BPF_UNWIND_UNWIND_WALK_TESTING_H

#include "tests/unit/runner/unit.h"

#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"

#define FILES 4

static struct unwind_file files[FILES];

static uint32_t looked_up; /* files, ever */

static const struct unwind_file *unwind_file_at(__u32 index)
{
	looked_up++;
	return index < FILES ? &files[index] : NULL;
}

#include "tests/unit/consumer/unwind/testing/mapped_file_testing.h"

#include "bpf/unwind/unwind_walk.h"

#include "tests/unit/consumer/unwind/testing/stack_walk_testing.h"

static struct unwind_ranges ranges;
static struct unwind_process process;

static int setup(void **state)
{
	ranges = (struct unwind_ranges){ 0 };
	process = (struct unwind_process){ .published = 7 };
	ranges.table_generation = 7;
	taking_cache = (struct unwind_cache){ 0 };
	pool.count = 0;
	return unwind_rules_init(&pool.rules);
}

static int teardown(void **state)
{
	unwind_rules_done(&pool.rules);
	return 0;
}

static const struct unwind_rule outermost = { .cfa = UNWIND_CFA_END };
static const struct unwind_rule next = { .cfa = UNWIND_CFA_SP, .cfa_offset = 8 };

/* Rows as they are written down here: from an address on, a rule. */
struct text_row {
	uint32_t pc;
	struct unwind_rule rule;
};

#define TEXT_PAGES 16 /* of the index: a range of 4 KiB */

/* Where byte `offset` of mapping `number` is. */
static uint64_t at(uint32_t number, uint64_t offset)
{
	return (16 + 16 * (uint64_t)number) * 4096 + offset;
}

static struct unwind_place place_rows(const struct text_row *rows, uint32_t count)
{
	struct unwind_place place = { .row_count = count, .page_count = TEXT_PAGES };
	uint32_t pages[TEXT_PAGES];

	place.rows = pool.count;
	for (uint32_t i = 0; i < count; i++) {
		struct unwind_row row = { .pc = rows[i].pc };

		assert_int_equal(
			unwind_rules_add(&pool.rules, rows[i].rule, UNWIND_RULES_MAX, &row.rule),
			0);
		pool_append(&row, sizeof(row));
	}
	for (uint32_t page = 0; page < TEXT_PAGES; page++) {
		uint32_t first = 0, end = 0;

		while (first + 1 < count && rows[first + 1].pc <= page * UNWIND_PAGE_BYTES)
			first++;
		for (end = first + 1; end < count; end++)
			if (rows[end].pc >= (page + 1) * UNWIND_PAGE_BYTES)
				break;
		pages[page] = UNWIND_PAGE(first, end - first);
	}
	place.pages = pool_append(pages, sizeof(pages));
	return place;
}

/* One mapping more, with a file of its own. */
static void add_mapping(uint32_t kind, const struct text_row *rows, uint32_t count)
{
	uint32_t number = ranges.count++;

	assert_true(number < FILES);
	if (count > 0)
		files[number].place = place_rows(rows, count);
	ranges.ranges[number] = UNWIND_RANGE(at(number, 0) / 4096, 1);
	process.mappings[number] =
		(struct unwind_mapping){ .base = at(number, 0), .file = number, .kind = kind };
}

static struct unwind_bounds bounds;

static enum unwind_end take(uint64_t pc, const uint64_t *sp, const uint64_t *fp, struct taken *t)
{
	const struct unwind_frame from = {
		.pc = pc, .sp = (uintptr_t)sp, .fp = (uintptr_t)fp, .exact = 1, .bounds = bounds
	};
	struct taken again;

	taking_cache = (struct unwind_cache){ 0 };
	taking(&from, &ranges, &process, NULL, t);
	/* What the first walk has left in the caches changes nothing. */
	taking(&from, &ranges, &process, NULL, &again);
	assert_int_equal(again.end, t->end);
	assert_int_equal(again.count, t->count);
	assert_int_equal(again.by_pointer, t->by_pointer);
	assert_memory_equal(again.frames, t->frames, t->count * sizeof(t->frames[0]));
	assert_memory_equal(again.followed, t->followed, t->count);
	return t->end;
}

static void check_frames(const struct taken *t, const uint64_t *expected, uint32_t count)
{
	assert_int_equal(t->count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(t->frames[i], expected[i]);
}

#define CHECK_FRAMES(t, ...)                               \
	check_frames(t, (const uint64_t[]){ __VA_ARGS__ }, \
		     sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#endif
