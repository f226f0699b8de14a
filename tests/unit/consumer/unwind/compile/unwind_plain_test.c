/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/unit/consumer/unwind/testing/unwind_plain_testing.h"

#define TEXT 0x10000

static int compare(const uint8_t *code, size_t bytes)
{
	struct cfi_bytes b = { .at = code, .end = code + bytes };

	for (uint32_t end = 1; end < 40; end++)
		whole_compare(-8, b, 0x10, 0x10 + end);
	return whole_compare(-8, b, 0, TEXT);
}

#define COMPARE(...) \
	compare((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* Each kind of instruction that is plain, wherever the text is cut; the rows are the same. */
static void test_plain(void **state)
{
	/* push %rbp; mov %rsp,%rbp; ... leave; ret; ... */
	assert_int_equal(COMPARE(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x80, 0x0a, 0x0c, 7,
				 8, 0xc6, 0x41, 0x0b, 0x03, 0, 1, 0x0e, 0x80, 2),
			 1);
	assert_int_equal(COMPARE(0x41, 0x0e, 16, 0x83, 2, 0x44, 0x0e, 0xa0, 0x02, 0x2e, 16, 0x04, 1,
				 0, 0, 0, 0x0c, 6, 16, 0xc3, 0x40, 0x0e, 8, 0, 0, 0),
			 1);
	assert_int_equal(COMPARE(0), 1);
	assert_int_equal(COMPARE(0, 0, 0, 0, 0, 0, 0, 0, 0), 1);
}

/* What the rest of the compiler is for is left to it, wherever in the program it stands. */
static void test_other(void **state)
{
	assert_int_equal(COMPARE(0x41, 0x0c, 10, 0), 0);	 /* CFA in r10 */
	assert_int_equal(COMPARE(0x41, 0x0f, 3, 0x77, 8, 6), 0); /* an expression */
	assert_int_equal(COMPARE(0x07, 16), 0);			 /* the outermost frame */
	assert_int_equal(COMPARE(0x90, 3), 0);			 /* another return address */
	assert_int_equal(COMPARE(0x87, 3), 0);			 /* the stack pointer saved */
	assert_int_equal(COMPARE(0x41, 0x0b), 0);		 /* nothing remembered */
	assert_int_equal(COMPARE(0x0e, 0x80, 0x80, 1), 0);	 /* a large frame */
	assert_int_equal(COMPARE(0x41, 0x0e), 0);		 /* it ends within */
	assert_int_equal(COMPARE(0x41, 0x04, 1, 0, 0), 0);	 /* so does an advance */
	assert_int_equal(COMPARE(0x08, 6), 0);			 /* fp is the same */
	assert_int_equal(COMPARE(0x41, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a), 0);
	assert_int_equal(COMPARE(0x3f), 0);
}

/* Zeros at the end are not run; where they are an operand, the rest of the compiler has it. */
static void test_zeros(void **state)
{
	assert_int_equal(COMPARE(0x41, 0x0e, 16, 0x41, 0x0e, 8, 0x41, 0x0e, 0), 0);
	assert_int_equal(COMPARE(0x41, 0x0e, 16, 0x42, 0x0e, 8, 0, 0, 0, 0, 0, 0), 1);
	assert_int_equal(COMPARE(0x41, 0x0e, 16, 0x41, 0x04, 0, 0, 0, 0), 0);
}

/* Which CIEs have plain functions. */
static void test_cie(void **state)
{
	struct unwind_plain plain;
	struct cfi_state initial;
	struct cfi_cie cie;

	whole_cie(-8, &cie, &initial);
	assert_true(unwind_plain_of(&cie, &initial, &plain));
	assert_int_equal(plain.data_align, -8);
	assert_int_equal(plain.initial.cfa_offset, 8);
	cie.signal = true;
	assert_false(unwind_plain_of(&cie, &initial, &plain));
	whole_cie(-1000, &cie, &initial);
	assert_false(unwind_plain_of(&cie, &initial, &plain));
	whole_cie(-8, &cie, &initial);
	cie.code_align = 4;
	assert_false(unwind_plain_of(&cie, &initial, &plain));
	whole_cie(-8, &cie, &initial);
	initial.pc.kind = CFI_UNDEFINED;
	assert_false(unwind_plain_of(&cie, &initial, &plain));
}

/* A full dictionary is an error, a full table may do for the whole run: it knows how many rows. */
static void test_walls(void **state)
{
	static const uint8_t code[] = { 0x41, 0x0e, 16, 0x41, 0x0e, 24 };
	struct unwind_plain_text text = { .code = { .at = code, .end = code + sizeof(code) },
					  .start = UNWIND_ROWS_MAX,
					  .end = UNWIND_ROWS_MAX + 9 };
	struct unwind_plain plain = { .initial = { .cfa = UNWIND_CFA_SP }, .data_align = -8 };
	struct unwind_table table = { 0 };
	struct unwind_rules rules;
	uint64_t steps = 0;

	assert_int_equal(unwind_rules_init(&rules), 0);
	assert_int_equal(unwind_plain_run(&plain, &text, &rules, 4, &table, &steps), -ENOSPC);
	assert_int_equal(table.row_count, 0);
	for (uint32_t i = 0; i < UNWIND_ROWS_MAX - 3; i++)
		if (unwind_table_push(&table, i, i & 1) != 0)
			fail();
	assert_int_equal(unwind_plain_run(&plain, &text, &rules, 100, &table, &steps), 0);
	assert_int_equal(table.row_count, UNWIND_ROWS_MAX - 3);
	unwind_table_done(&table);
	unwind_rules_done(&rules);
}

/* Programs at random, made of the instructions that compilers write. */
static void test_random(void **state)
{
	static const uint8_t ops[] = { 0x41, 0x44, 0x0e, 0x86, 0x83, 0x0d, 0x0c, 0x0a,
				       0x0b, 0xc6, 0xc3, 0x02, 0x00, 0x2e, 0x06, 0x07 };
	uint8_t code[64];
	int plain = 0;

	srandom(1);
	for (int i = 0; i < 20000; i++) {
		size_t bytes = 1 + (size_t)random() % sizeof(code);

		for (size_t j = 0; j < bytes; j++)
			code[j] = random() % 2 ? ops[(size_t)random() % sizeof(ops)]
					       : (uint8_t)(random() % 20);
		plain += whole_compare(-8, (struct cfi_bytes){ .at = code, .end = code + bytes },
				       0x20, 0x21 + (uint32_t)random() % 300);
	}
	assert_in_range(plain, 100, 19900);
}

UNIT_TESTS(unwind_plain)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain), cmocka_unit_test(test_other),
		cmocka_unit_test(test_zeros), cmocka_unit_test(test_cie),
		cmocka_unit_test(test_walls), cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
