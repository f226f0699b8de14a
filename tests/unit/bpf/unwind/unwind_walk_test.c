/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's walk on the host: ranges, kinds of mappings, and how each walk ends. */
#include "tests/unit/bpf/unwind/unwind_walk_testing.h"

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
			assert_int_equal(unwind_find_range(&ranges, (uint32_t)random() % 600, pc),
					 want);
		}
		page = 16;
	}
	/* What is left of an earlier filling does not count. */
	ranges.count = 0;
	assert_int_equal(unwind_find_range(&ranges, 0, 16 * 4096), UNWIND_RANGES);
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
		.table_generation = ranges.table_generation,
	};
	unwind_begin(&w->frame);
	taking_cache = (struct unwind_cache){ 0 }; /* tables change here under one filling */
	while (unwind_walk_advance(w, &ranges, &process, &taking_cache, &taking_code) &&
	       w->stop_reason == UNWIND_END_NONE)
		;
	return w->stop_reason;
}

#define TEXT (16 * 4096 + 0x20)

static const struct unwind_rule nothing;

static void test_rows(void **state)
{
	uint64_t stack[4] = { TEXT, TEXT + 8, 0, 0 };
	struct unwind_walk w;

	make(UNWIND_KIND_ROWS, next);
	assert_int_equal(walk(TEXT, stack, NULL, &w), UNWIND_END_NO_CALLER);
	assert_int_equal(w.frame.pc, 0); /* which is not reported */
	stack[1] = 0x1234;
	assert_int_equal(walk(TEXT, stack, NULL, &w), UNWIND_END_NO_CALLER);
	assert_int_equal(walk(TEXT + 4096, stack, NULL, &w), UNWIND_END_NO_MAPPING);
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
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_NO_CALLER);
	assert_int_equal(w.steps, 2);
	assert_true(w.by_pointer);
	process.mappings[0].kind = UNWIND_KIND_ROWS;
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_NO_CALLER);
	assert_int_equal(w.steps, 2);
	assert_true(w.by_pointer);
	process.mappings[0].kind = UNWIND_KIND_ROWS_ALONE;
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_NO_ROW);
	assert_int_equal(w.frame.pc, TEXT);
}

/* A register that holds no frame pointer leads nowhere, and this is reported. */
static void test_no_pointers(void **state)
{
	uint64_t stack[6] = { 0, 0, 1, 0x1234, 0, 0 };
	struct unwind_walk w;

	make(UNWIND_KIND_FP, nothing);
	assert_int_equal(walk(TEXT, stack, &stack[2], &w), UNWIND_END_NO_CALLER);
	assert_int_equal(walk(TEXT, &stack[4], &stack[2], &w), UNWIND_END_NO_CALLER);
	assert_int_equal(walk(TEXT, stack, (const void *)-16, &w), UNWIND_END_NO_CALLER);
}

static const struct unwind_rule large = { .cfa = UNWIND_CFA_SP, .cfa_offset = 24 };
static const struct unwind_rule by_fp = {
	.cfa = UNWIND_CFA_FP,
	.cfa_offset = 16,
	.fp_offset = -16,
	.saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA),
};

/*
 * A library without frame pointers, called by code made at run time, called by a program with a
 * frame that is found by the pointer that the steps without rows have kept.
 */
static void test_mixed(void **state)
{
	const struct text_row program[] = { { 0, next }, { 0x100, by_fp }, { 0x200, outermost } };
	const struct text_row library[] = { { 0, large } };
	uint64_t s[16] = { 0 };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, program, 3);
	add_mapping(UNWIND_KIND_FP, NULL, 0);
	add_mapping(UNWIND_KIND_ROWS, library, 1);
	s[2] = at(1, 0x10);
	s[4] = (uintptr_t)&s[8];
	s[5] = at(1, 0x20);
	s[8] = (uintptr_t)&s[12];
	s[9] = at(0, 0x108);
	s[13] = at(0, 0x208);
	assert_int_equal(take(at(2, 5), s, &s[4], &t), UNWIND_END_COMPLETE);
	CHECK_FRAMES(&t, at(2, 5), at(1, 0x10), at(1, 0x20), at(0, 0x108), at(0, 0x208));
	/* A pointer that leads out of the stack is none. */
	s[8] = 0x10;
	assert_int_equal(take(at(2, 5), s, &s[4], &t), UNWIND_END_NO_CALLER);
	s[4] = 0x10;
	assert_int_equal(take(at(2, 5), s, &s[4], &t), UNWIND_END_NO_CALLER);
	CHECK_FRAMES(&t, at(2, 5), at(1, 0x10), at(1, 0x20));
}

/*
 * V8: compiled code in anonymous memory and built-in code in the program's text, both without rows
 * and with frame pointers, called by C++ that has rows alone.
 */
static void test_anonymous(void **state)
{
	const struct text_row program[] = { { 0, nothing },
					    { 0x400, large },
					    { 0x800, outermost } };
	uint64_t s[16] = { 0 };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, program, 3);
	add_mapping(UNWIND_KIND_FP, NULL, 0);
	s[1] = (uintptr_t)&s[3];
	s[2] = at(1, 0x40);
	s[3] = (uintptr_t)&s[6];
	s[4] = at(0, 0x20);
	s[6] = 0;
	s[7] = at(0, 0x420);
	s[10] = at(0, 0x808);
	assert_int_equal(take(at(1, 0x80), s, &s[1], &t), UNWIND_END_COMPLETE);
	CHECK_FRAMES(&t, at(1, 0x80), at(1, 0x40), at(0, 0x20), at(0, 0x420), at(0, 0x808));
	/* With rows alone, as a rule may want it, the built-in code ends it. */
	process.mappings[0].kind = UNWIND_KIND_ROWS_ALONE;
	assert_int_equal(take(at(1, 0x80), s, &s[1], &t), UNWIND_END_NO_ROW);
	CHECK_FRAMES(&t, at(1, 0x80), at(1, 0x40), at(0, 0x20));
}

static void fill_again(const struct unwind_walk *w, const struct taken *so_far)
{
	if (so_far->count == 2)
		ranges.table_generation = 8;
}

/* Every end that the kernel side can report, each by a stack of its own. */
static void test_ends(void **state)
{
	const struct unwind_rule lost = { .cfa = UNWIND_CFA_SP,
					  .cfa_offset = 8,
					  .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_UNKNOWN) };
	const struct unwind_rule down = { .cfa = UNWIND_CFA_SP, .cfa_offset = -8 };
	const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED };
	const struct text_row rows[] = {
		{ 0, next },	  { 0x100, nothing }, { 0x200, unsupported }, { 0x300, lost },
		{ 0x400, by_fp }, { 0x500, down },    { 0x600, outermost },
	};
	const struct {
		uint64_t from, to;
		enum unwind_end end;
		uint32_t frames;
	} cases[] = {
		{ 0x608, 0, UNWIND_END_COMPLETE, 1 },
		{ 0x2008, 0, UNWIND_END_NO_MAPPING, 1 },
		{ 8, 0, UNWIND_END_NO_CALLER, 1 },
		{ 8, 0x1234, UNWIND_END_NO_CALLER, 1 },
		{ 8, at(0, 0x108), UNWIND_END_NO_ROW, 2 },
		{ 8, at(0, 0x208), UNWIND_END_BAD_RULE, 2 },
		{ 0x308, at(0, 0x408), UNWIND_END_FRAME_POINTER, 2 },
		{ 8, at(0, 0x508), UNWIND_END_NO_CALLER, 2 },
		{ 8, at(0, 0x408), UNWIND_END_NO_CALLER, 2 }, /* by the pointer */
		{ 8, at(1, 8), UNWIND_END_NO_CALLER, 2 },
		{ 8, at(0, 8), UNWIND_END_DEPTH, STACK_FRAMES },
	};
	uint64_t s[2 * STACK_FRAMES];
	uint32_t reached = 0, all = (1u << UNWIND_END_NO_PLACE) - 2;
	struct unwind_frame from = { .sp = (uintptr_t)s, .fp = -4096ull, .exact = 1 };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS_ALONE, rows, 7);
	add_mapping(UNWIND_KIND_FP, NULL, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (size_t k = 0; k < sizeof(s) / sizeof(*s); k++)
			s[k] = cases[i].to;
		from.pc = at(0, cases[i].from);
		taking(&from, &ranges, &process, NULL, &t);
		assert_int_equal(t.end, cases[i].end);
		assert_int_equal(t.count, cases[i].frames);
		reached |= 1u << t.end;
	}
	taking(&from, &ranges, &process, fill_again, &t);
	assert_int_equal(t.end, UNWIND_END_SWITCHED);
	CHECK_FRAMES(&t, at(0, 8));
	assert_int_equal(reached | 1u << UNWIND_END_SWITCHED | 1u << UNWIND_END_CHANGED, all);
}

/* How many files a walk of that stack looks up. */
static uint32_t take_counted(const uint64_t *s, struct taken *t)
{
	const struct unwind_frame from = { .pc = at(0, 8), .sp = (uintptr_t)s, .exact = 1 };
	uint32_t before = looked_up;

	taking(&from, &ranges, &process, NULL, t);
	return looked_up - before;
}

/* What was found once is not looked up again under the same filling; under another it is. */
static void test_cache(void **state)
{
	const struct text_row rows[] = { { 0, next }, { 0x100, outermost } };
	const uint64_t s[] = { at(0, 0x10), at(0, 0x20), at(0, 0x10), at(0, 0x108) };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, rows, 2);
	ranges.table_generation = process.published = 7;
	assert_int_equal(take_counted(s, &t), 4); /* the leaf, and three addresses */
	CHECK_FRAMES(&t, at(0, 8), s[0], s[1], s[2], s[3]);
	assert_int_equal(take_counted(s, &t), 1); /* the leaf */
	CHECK_FRAMES(&t, at(0, 8), s[0], s[1], s[2], s[3]);
	assert_int_equal(t.end, UNWIND_END_COMPLETE);
	ranges.table_generation = process.published = 8;
	ranges.ranges[0] = UNWIND_RANGE(at(1, 0) / 4096, 1);
	assert_int_equal(take_counted(s, &t), 0); /* nothing is in its ranges now */
	CHECK_FRAMES(&t, at(0, 8));
	assert_int_equal(t.end, UNWIND_END_NO_MAPPING);
}

/* An address is remembered as one that is returned to: as one that runs next it has another row. */
static void test_cache_exact(void **state)
{
	const struct text_row rows[] = { { 0, next }, { 0x10, outermost } };
	const uint64_t s[] = { at(0, 0x10), 0 };
	struct unwind_frame from = { .pc = at(0, 8), .sp = (uintptr_t)s, .exact = 1 };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, rows, 2);
	taking(&from, &ranges, &process, NULL, &t);
	CHECK_FRAMES(&t, at(0, 8), at(0, 0x10)); /* by the row before */
	from.pc = at(0, 0x10);
	taking(&from, &ranges, &process, NULL, &t);
	CHECK_FRAMES(&t, at(0, 0x10));
}

/* Addresses that share a place in it drive each other out, and are right all the same. */
static void test_cache_full(void **state)
{
	const struct text_row rows[] = { { 0, next } };
	uint64_t s[2] = { 0 };
	struct unwind_frame from = { .pc = at(0, 0), .sp = (uintptr_t)s, .exact = 1 };
	struct taken t;

	add_mapping(UNWIND_KIND_ROWS, rows, 1);
	for (uint32_t round = 0; round < 2; round++)
		for (uint64_t i = 1; i < 4096; i++) {
			s[0] = at(0, i);
			taking(&from, &ranges, &process, NULL, &t);
			CHECK_FRAMES(&t, at(0, 0), s[0]);
		}
}

UNIT_TESTS(unwind_walk)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_pointers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mixed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_anonymous, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cache_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
