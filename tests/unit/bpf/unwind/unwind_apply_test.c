/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_apply_test.c: the search and each rule of bpf/unwind/unwind.h, on the host. Whole stacks:
 * unwind_step_test.c.
 */
#include "tests/unit/runner/unit.h"

#include "consumer/unwind/compile/unwind_compile.h"
#include "tests/unit/consumer/unwind/testing/image_testing.h"
#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"

static int setup(void **state)
{
	return unwind_rules_init(&pool.rules);
}

static int teardown(void **state)
{
	unwind_rules_done(&pool.rules);
	free(pool.elements);
	return 0;
}

/* The search and unwind_table_find agree on this program's text. */
static void test_search(void **state)
{
	struct elf_image image;
	struct unwind_table t;
	struct unwind_place place;

	assert_int_equal(image_open("/proc/self/exe", &image), 0);
	assert_int_equal(unwind_compile(&image, &pool.rules, &t), 0);
	image_close(&image);
	place = pool_place(&t);
	for (uint64_t pc = 0; pc < (uint64_t)(t.page_count + 2) << UNWIND_PAGE_SHIFT; pc += 3)
		if (unwind_search(&place, pc) != unwind_table_find(&t, t.base + pc))
			fail();
	assert_int_equal(unwind_search(&place, UINT64_MAX), UNWIND_RULE_NONE);
	unwind_table_done(&t);
}

static enum unwind_end apply(struct unwind_rule rule, struct unwind_frame *f)
{
	return unwind_apply(f, &rule);
}

/* Word i of it is 0x1000 + i, but for those that a test sets. */
static uint64_t stack[32];
/* The caller of a frame that has sp at the stack's first word and fp at its ninth. */
static struct unwind_frame caller_by(struct unwind_rule rule)
{
	struct unwind_frame f = { .pc = 0x100a, .sp = (uint64_t)stack, .fp = (uint64_t)&stack[8] };

	unwind_begin(&f);
	assert_int_equal(apply(rule, &f), UNWIND_END_NONE);
	return f;
}

static void test_rules(void **state)
{
	struct unwind_frame f;

	for (uint64_t i = 0; i < 32; i++)
		stack[i] = 0x1000 + i;
	f = caller_by((struct unwind_rule){ .cfa = UNWIND_CFA_SP,
					    .cfa_offset = 16,
					    .fp_offset = -16,
					    .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA) });
	assert_int_equal(f.pc, 0x1001);
	assert_int_equal(f.fp, 0x1000);
	assert_int_equal(f.sp, (uint64_t)&stack[2]);
	f = caller_by((struct unwind_rule){ .cfa = UNWIND_CFA_FP,
					    .cfa_offset = 16,
					    .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_FP) });
	assert_int_equal(f.pc, 0x1009);
	assert_int_equal(f.fp, 0x1008);
	/* After the frame's end, the register has been restored. */
	for (int16_t below = -32; below <= 16; below += 48) {
		f = caller_by((struct unwind_rule){
			.cfa = UNWIND_CFA_SP,
			.cfa_offset = 16,
			.fp_offset = below,
			.saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA) });
		assert_int_equal(f.fp, (uint64_t)&stack[8]);
		assert_false(f.fp_lost);
	}
	f = caller_by(
		(struct unwind_rule){ .cfa = UNWIND_CFA_SP,
				      .cfa_offset = 80,
				      .fp_offset = -24,
				      .saved = UNWIND_SAVED(UNWIND_RA_ALONE, UNWIND_FP_SAME) });
	assert_int_equal(f.pc, 0x1007);
	assert_int_equal(f.fp, (uint64_t)&stack[8]);
}

/* At the first byte of a row an exact address is that row's, a return address the one's before. */
static void test_exact(void **state)
{
	struct unwind_table t = { .base = 0x1000 };
	uint64_t words[] = { 1, 2, 3, 4 };
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SP };
	struct unwind_place place;

	for (uint32_t i = 0; i < 2; i++) {
		uint16_t index;

		rule.cfa_offset = 8 + 8 * (int32_t)i;
		assert_int_equal(unwind_rules_add(&pool.rules, rule, UNWIND_RULES_MAX, &index), 0);
		assert_int_equal(unwind_table_push(&t, i * 0x10, index), 0);
	}
	assert_int_equal(unwind_table_finish(&t), 0);
	place = pool_place(&t);
	unwind_table_done(&t);
	for (uint32_t exact = 0; exact < 2; exact++) {
		struct unwind_frame f = { .pc = 0x1010, .sp = (uint64_t)words, .exact = exact };

		unwind_begin(&f);
		assert_int_equal(unwind_step(&f, &place, 0x1000), UNWIND_END_NONE);
		assert_int_equal(f.pc, exact ? 2 : 1);
		assert_false(f.exact);
		f.pc = 0xfff; /* below the table */
		assert_int_equal(unwind_step(&f, &place, 0x1000), UNWIND_END_NO_ROW);
	}
}

static void test_memory_rules(void **state)
{
	struct unwind_frame f;

	for (uint64_t i = 0; i < 32; i++)
		stack[i] = 0x1000 + i;
	stack[4] = stack[6] = (uint64_t)&stack[20];
	f = caller_by((struct unwind_rule){ .cfa = UNWIND_CFA_SP_MEMORY,
					    .cfa_offset = UNWIND_HALVES(32, 8) });
	assert_int_equal(f.sp, (uint64_t)&stack[21]);
	assert_int_equal(f.pc, 0x1014);
	f = caller_by(
		(struct unwind_rule){ .cfa = UNWIND_CFA_FP_MEMORY,
				      .cfa_offset = UNWIND_HALVES(-16, -8),
				      .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_UNKNOWN) });
	assert_int_equal(f.pc, 0x1012);
	assert_true(f.fp_lost);
	for (uint64_t limit = 10; limit <= 11; limit++) {
		f = caller_by((struct unwind_rule){ .cfa = UNWIND_CFA_PLT,
						    .cfa_offset = UNWIND_HALVES(8, limit) });
		assert_int_equal(f.pc, limit == 10 ? 0x1001 : 0x1000);
	}
}

/* Only a leaf's register is known; its frame may have no bytes. */
static void test_in_register(void **state)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_SP,
				    .saved = UNWIND_SAVED(UNWIND_RA_REGISTER, UNWIND_FP_SAME) };
	struct unwind_frame f = {
		.pc = 0x1000, .sp = (uint64_t)stack, .fp = 3, .link = 0x2345, .exact = 1
	};

	unwind_begin(&f);
	assert_int_equal(apply(rule, &f), UNWIND_END_NONE);
	assert_int_equal(f.pc, 0x2345);
	assert_int_equal(f.sp, (uint64_t)stack);
	assert_int_equal(f.fp, 3);
	assert_int_equal(f.link, 0);
	assert_false(f.exact);
	assert_int_equal(apply(rule, &f), UNWIND_END_NO_CALLER);
	f.link = 0x2345;
	rule.cfa_offset = -8;
	assert_int_equal(apply(rule, &f), UNWIND_END_BAD_RULE);
}

static void test_ends(void **state)
{
	uint64_t words[4] = { 0, 1, 2, 3 };
	struct unwind_frame f = { .pc = 0x1000, .sp = (uint64_t)words }, before;
	const struct {
		struct unwind_rule rule;
		enum unwind_end end;
	} rows[] = {
		{ { .cfa = UNWIND_CFA_NONE }, UNWIND_END_NO_ROW },
		{ { .cfa = UNWIND_CFA_UNSUPPORTED }, UNWIND_END_BAD_RULE },
		{ { .cfa = UNWIND_CFA_END }, UNWIND_END_COMPLETE },
		{ { .cfa = 200 }, UNWIND_END_BAD_RULE },
		{ { .cfa = UNWIND_CFA_SP, .cfa_offset = 0 }, UNWIND_END_NO_CALLER },
		{ { .cfa = UNWIND_CFA_SP, .cfa_offset = -8 }, UNWIND_END_NO_CALLER },
		{ { .cfa = UNWIND_CFA_SP, .cfa_offset = 12 }, UNWIND_END_NO_CALLER },
		{ { .cfa = UNWIND_CFA_SP, .cfa_offset = INT32_MAX }, UNWIND_END_NO_CALLER },
		{ { .cfa = UNWIND_CFA_FP, .cfa_offset = 16 }, UNWIND_END_NO_CALLER },
		{ { .cfa = UNWIND_CFA_FP_MEMORY }, UNWIND_END_NO_CALLER },
		{ { .cfa = UNWIND_CFA_SP_MEMORY }, UNWIND_END_NO_CALLER }, /* the word is 0 */
		{ { .cfa = UNWIND_CFA_SP, .cfa_offset = 16, .saved = 7 }, UNWIND_END_BAD_RULE },
		{ { .cfa = UNWIND_CFA_SP,
		    .cfa_offset = 16,
		    .fp_offset = 8,
		    .saved = UNWIND_SAVED(UNWIND_RA_ALONE, UNWIND_FP_SAME) },
		  UNWIND_END_NO_CALLER },
		{ { .cfa = UNWIND_CFA_SP, .cfa_offset = 16, .saved = UNWIND_SAVED_EXACT },
		  UNWIND_END_BAD_RULE }, /* no code of a signal's return is there */
	};

	unwind_begin(&f);
	before = f;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(apply(rows[i].rule, &f), rows[i].end);
		assert_memory_equal(&f, &before, offsetof(struct unwind_frame, stack));
	}
	f.fp_lost = 1;
	assert_int_equal(apply((struct unwind_rule){ .cfa = UNWIND_CFA_FP, .cfa_offset = 16 }, &f),
			 UNWIND_END_FRAME_POINTER);
	assert_int_equal(unwind_step_fp(&f), UNWIND_END_FRAME_POINTER);
}

static void test_frame_pointer(void **state)
{
	uint64_t words[6] = { 0, 0, 0, 0x1234 };
	struct unwind_frame f = { .pc = 1, .sp = (uint64_t)words, .fp = (uint64_t)&words[2] };

	unwind_begin(&f);
	words[2] = (uint64_t)&words[4];
	assert_int_equal(unwind_step_fp(&f), UNWIND_END_NONE);
	assert_int_equal(f.pc, 0x1234);
	assert_int_equal(f.sp, (uint64_t)&words[4]);
	assert_int_equal(f.fp, (uint64_t)&words[4]);
	f.fp = (uint64_t)&words[3];
	assert_int_equal(unwind_step_fp(&f), UNWIND_END_NO_CALLER);
	f.fp = (uint64_t)&words[4] + 4;
	assert_int_equal(unwind_step_fp(&f), UNWIND_END_NO_CALLER);
	f.fp = 0;
	assert_int_equal(unwind_step_fp(&f), UNWIND_END_NO_CALLER);
	f.fp = UINT64_MAX - 64;
	assert_int_equal(unwind_step_fp(&f), UNWIND_END_NO_CALLER);
}

/* A leaf may keep something below its stack pointer, and only so far below it. */
static void test_red_zone(void **state)
{
	const struct unwind_rule rule = { .cfa = UNWIND_CFA_SP_MEMORY,
					  .cfa_offset = UNWIND_HALVES(-8, 8) };
	struct unwind_frame f = { .pc = 1, .sp = (uint64_t)&stack[20], .exact = 1 }, leaf;

	unwind_begin(&f);
	stack[19] = (uint64_t)&stack[22];
	stack[22] = 0x1234;
	leaf = f;
	assert_int_equal(apply(rule, &leaf), UNWIND_END_NONE);
	assert_int_equal(leaf.pc, 0x1234);
	assert_int_equal(leaf.sp, (uint64_t)&stack[23]);
	f.exact = 0;
	assert_int_equal(apply(rule, &f), UNWIND_END_NO_CALLER);
	f.exact = 1;
	stack[3] = (uint64_t)&stack[22];
	assert_int_equal(apply((struct unwind_rule){ .cfa = UNWIND_CFA_SP_MEMORY,
						     .cfa_offset = UNWIND_HALVES(-136, 8) },
			       &f),
			 UNWIND_END_NO_CALLER);
}

/* A stack ends at the nearest bound above, and is never larger than the largest. */
static void test_top(void **state)
{
	struct unwind_bounds b = { .main = 0x70000000, .thread = 0x50000000 };

	assert_int_equal(unwind_stack_top(&b, 0x40000000), 0x50000000);
	assert_int_equal(unwind_stack_top(&b, 0x60000000), 0x70000000);
	assert_int_equal(unwind_stack_top(&b, 0x70000008), 0x70000008 + UNWIND_STACK_MAX);
	assert_int_equal(unwind_stack_top(&b, 0x1000), 0x1000 + UNWIND_STACK_MAX);
	assert_int_equal(unwind_stack_top(&b, -16), UINT64_MAX);
	b = (struct unwind_bounds){ 0 };
	assert_int_equal(unwind_stack_top(&b, 0x1000), 0x1000 + UNWIND_STACK_MAX);
	assert_false(unwind_on_known_stack(&b, 0));
}

/* Above its end nothing is read, by whatever way a rule leads there. */
static void test_beyond_the_top(void **state)
{
	const struct unwind_rule rules[] = {
		{ .cfa = UNWIND_CFA_SP, .cfa_offset = 48 },
		{ .cfa = UNWIND_CFA_FP, .cfa_offset = 16 },
		{ .cfa = UNWIND_CFA_FP_MEMORY, .cfa_offset = UNWIND_HALVES(0, 8) },
		{ .cfa = UNWIND_CFA_SP_MEMORY, .cfa_offset = UNWIND_HALVES(8, 8) },
		{ .cfa = UNWIND_CFA_PLT, .cfa_offset = UNWIND_HALVES(48, 16) },
	};
	struct unwind_frame f = { .pc = 1, .sp = (uint64_t)stack, .fp = (uint64_t)&stack[4] };

	for (uint64_t i = 0; i < 32; i++)
		stack[i] = (uint64_t)&stack[4];
	for (int beyond = 0; beyond < 2; beyond++)
		for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
			struct unwind_frame at = f;

			at.bounds.main = (uint64_t)&stack[beyond ? 4 : 6];
			unwind_begin(&at);
			assert_int_equal(apply(rules[i], &at),
					 beyond ? UNWIND_END_NO_CALLER : UNWIND_END_NONE);
		}
}

UNIT_TESTS(unwind_apply)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_search),	    cmocka_unit_test(test_rules),
		cmocka_unit_test(test_exact),	    cmocka_unit_test(test_memory_rules),
		cmocka_unit_test(test_ends),	    cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_in_register), cmocka_unit_test(test_top),
		cmocka_unit_test(test_red_zone),    cmocka_unit_test(test_beyond_the_top),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
