/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's walk on the host: ranges, kinds of mappings, and how each walk ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/consumer/unwind/pool.h"

#define FILES 4

static struct unwind_file files[FILES];

static const struct unwind_file *unwind_file_at(__u32 index)
{
	return index < FILES ? &files[index] : NULL;
}

#include "bpf/unwind_walk.h"

static struct unwind_ranges ranges;
static struct unwind_process process;

static int setup(void **state)
{
	ranges = (struct unwind_ranges){ 0 };
	process = (struct unwind_process){ 0 };
	pool.count = 0;
	return unwind_rules_init(&pool.rules);
}

static int teardown(void **state)
{
	unwind_rules_done(&pool.rules);
	return 0;
}

static void test_find(void **state)
{
	uint64_t page = 16;

	srandom(5);
	for (uint32_t n = 0; n <= UNWIND_RANGES; n += n < 5 ? 1 : 101) {
		ranges.count = n;
		for (uint32_t i = 0; i < n; i++) {
			uint64_t pages = (uint64_t)random() % 4; /* of none: not confirmed */

			ranges.ranges[i] = UNWIND_RANGE(page, pages);
			page += pages + (uint64_t)random() % 3 + !pages;
		}
		for (uint32_t k = 0; k < 20000; k++) {
			uint64_t pc = (uint64_t)random() % (page * 4096 + 8192);
			uint32_t want = UNWIND_RANGES;

			for (uint32_t i = 0; i < n; i++)
				if (pc >= UNWIND_RANGE_PAGE(ranges.ranges[i]) * 4096 &&
				    pc < (UNWIND_RANGE_PAGE(ranges.ranges[i]) +
					  UNWIND_RANGE_PAGES(ranges.ranges[i])) *
						    4096)
					want = i;
			assert_int_equal(unwind_find(&ranges, (uint32_t)random() % 600, pc), want);
		}
		page = 16;
	}
	/* What is left of an earlier filling does not count. */
	ranges.count = 0;
	assert_int_equal(unwind_find(&ranges, 0, 16 * 4096), UNWIND_RANGES);
}

/* One mapping of the test's own, and one rule for all of it. */
static void make(uint32_t kind, struct unwind_rule rule)
{
	static const uint32_t pages[2] = { UNWIND_PAGE(0, 1), UNWIND_PAGE(0, 1) };
	struct unwind_row row = { 0 };

	assert_int_equal(unwind_rules_add(&pool.rules, rule, UNWIND_RULES_MAX, &row.rule), 0);
	files[1].place = (struct unwind_place){ .row_count = 1, .page_count = 2 };
	files[1].place.rows = pool_append(&row, sizeof(row));
	files[1].place.pages = pool_append(pages, sizeof(pages));
	ranges.count = 1;
	ranges.ranges[0] = UNWIND_RANGE(16, 1);
	process.mappings[0] = (struct unwind_mapping){ .base = 16 * 4096, .file = 1, .kind = kind };
}

static enum unwind_end walk(uint64_t pc, const uint64_t *sp, const void *fp, struct unwind_walk *w)
{
	*w = (struct unwind_walk){
		.frame = { .pc = pc, .sp = (uintptr_t)sp, .fp = (uintptr_t)fp, .exact = 1 },
	};
	while (unwind_walk_on(w, &ranges, &process) && w->end == UNWIND_END_NONE)
		;
	return w->end;
}

#define TEXT (16 * 4096 + 0x20)

static const struct unwind_rule nothing;
static const struct unwind_rule next = { .cfa = UNWIND_CFA_SP, .cfa_offset = 8 };

static void test_rows(void **state)
{
	uint64_t stack[4] = { TEXT, TEXT + 8, 0, 0 };
	struct unwind_walk w;

	make(UNWIND_KIND_ROWS, next);
	assert_int_equal(walk(TEXT, stack, NULL, &w), UNWIND_END_COMPLETE);
	assert_int_equal(w.frame.pc, TEXT + 8);
	stack[1] = 0x1234;
	assert_int_equal(walk(TEXT, stack, NULL, &w), UNWIND_END_NO_MAPPING);
	process.mappings[0].file = 99;
	assert_int_equal(walk(TEXT, stack, NULL, &w), UNWIND_END_NO_ROW);
	process.mappings[0].kind = UNWIND_KIND_NONE;
	assert_int_equal(walk(TEXT, stack, NULL, &w), UNWIND_END_NO_ROW);
	process.mappings[0].kind = 77;
	assert_int_equal(walk(TEXT, stack, NULL, &w), UNWIND_END_NO_ROW);
}

/* Where there is no row: by the frame pointer, unless rows alone are wanted. */
static void test_pointers(void **state)
{
	uint64_t stack[6] = { 0, 0, 0, TEXT + 4, 0, 0 };
	struct unwind_walk w;

	stack[2] = (uintptr_t)&stack[4];
	make(UNWIND_KIND_FP, nothing);
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_COMPLETE);
	assert_int_equal(w.frame.pc, TEXT + 4);
	process.mappings[0].kind = UNWIND_KIND_ROWS;
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_NO_ROW);
	assert_int_equal(w.frame.pc, TEXT + 4);
	process.mappings[0].kind = UNWIND_KIND_ROWS_ALONE;
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_NO_ROW);
	assert_int_equal(w.frame.pc, TEXT);
}

/* A register that holds no frame pointer leads nowhere, and that is said. */
static void test_no_pointers(void **state)
{
	uint64_t stack[6] = { 0, 0, 1, 0x1234, 0, 0 };
	struct unwind_walk w;

	make(UNWIND_KIND_FP, nothing);
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_NO_POINTERS);
	assert_int_equal(walk(TEXT, &stack[4], &stack[2], &w), UNWIND_END_NO_POINTERS);
	assert_int_equal(walk(TEXT, stack, (const void *)-16, &w), UNWIND_END_NO_POINTERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_pointers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
