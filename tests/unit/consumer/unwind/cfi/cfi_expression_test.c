/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "consumer/unwind/cfi/cfi_expression.h"

#define EXPRESSION(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

static void is(const uint8_t *e, size_t bytes, bool with_cfa, struct cfi_value expected)
{
	struct cfi_value v;

	assert_true(cfi_expression_value(e, bytes, with_cfa, &v));
	assert_int_equal(v.base, expected.base);
	assert_int_equal(v.memory, expected.memory);
	assert_int_equal(v.a, expected.a);
	assert_int_equal(v.b, expected.b);
}

static void is_none(const uint8_t *e, size_t bytes)
{
	struct cfi_value v;

	assert_false(cfi_expression_value(e, bytes, false, &v));
}

static void test_forms(void **state)
{
	is(EXPRESSION(0x77, 0x10), false, (struct cfi_value){ CFI_BASE_SP, false, 16, 0 });
	is(EXPRESSION(0x76, 0x78), false, (struct cfi_value){ CFI_BASE_FP, false, -8, 0 });
	is(EXPRESSION(0x92, 6, 0x10), false, (struct cfi_value){ CFI_BASE_FP, false, 16, 0 });
	/* *(rsp + 88) + 8, as openssl's assembly writes it, and with a literal */
	is(EXPRESSION(0x77, 0xd8, 0, 0x06, 0x23, 8), false,
	   (struct cfi_value){ CFI_BASE_SP, true, 88, 8 });
	is(EXPRESSION(0x77, 0xd8, 0, 0x06, 0x38, 0x22), false,
	   (struct cfi_value){ CFI_BASE_SP, true, 88, 8 });
	is(EXPRESSION(0x38, 0x77, 0, 0x22, 0x96), false,
	   (struct cfi_value){ CFI_BASE_SP, false, 8, 0 });
	is(EXPRESSION(0x77, 0, 0x08, 0xff, 0x1c), false,
	   (struct cfi_value){ CFI_BASE_SP, false, -255, 0 });
	is(EXPRESSION(0x77, 0, 0x0d, 0xfe, 0xff, 0xff, 0xff, 0x22), false,
	   (struct cfi_value){ CFI_BASE_SP, false, -2, 0 });
	is(EXPRESSION(0x23, 8), true, (struct cfi_value){ CFI_BASE_CFA, false, 8, 0 });
	is(EXPRESSION(0x76, 0), true, (struct cfi_value){ CFI_BASE_FP, false, 0, 0 });
}

static void test_refused(void **state)
{
	uint8_t deep[16], lengthy[CFI_EXPRESSION_MAX + 2];

	is_none(EXPRESSION(0x06));		     /* load without an address */
	is_none(EXPRESSION(0x38, 0x06));	     /* load from a number */
	is_none(EXPRESSION(0x77, 0, 0x06, 0x06));    /* two loads */
	is_none(EXPRESSION(0x77, 0, 0x76, 0, 0x22)); /* a sum of registers */
	is_none(EXPRESSION(0x38, 0x77, 0, 0x1c));    /* a number less a register */
	is_none(EXPRESSION(0x22));		     /* a sum of nothing */
	is_none(EXPRESSION(0x23, 8));		     /* likewise */
	is_none(EXPRESSION(0x79, 0));		     /* another register */
	is_none(EXPRESSION(0x77));		     /* cut */
	is_none(EXPRESSION(0x77, 0x80));	     /* cut in a number */
	is_none(EXPRESSION(0xff));		     /* unknown */
	is_none(deep, 0);			     /* empty */
	memset(deep, 0x30, sizeof(deep));
	is_none(deep, sizeof(deep)); /* too many values */
	memset(lengthy, 0x96, sizeof(lengthy));
	lengthy[0] = 0x77;
	lengthy[1] = 0;
	is(lengthy, CFI_EXPRESSION_MAX, false, (struct cfi_value){ .base = CFI_BASE_SP });
	is_none(lengthy, CFI_EXPRESSION_MAX + 1);
}

static void test_plt(void **state)
{
	uint8_t plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
	uint8_t limit;
	int64_t base;

	assert_true(cfi_expression_plt(plt, sizeof(plt), &base, &limit));
	assert_int_equal(base, 8);
	assert_int_equal(limit, 11);
	plt[6] = 0x36; /* the second table's slots push earlier */
	assert_true(cfi_expression_plt(plt, sizeof(plt), &base, &limit));
	assert_int_equal(limit, 6);
	for (size_t i = 0; i < sizeof(plt); i++) {
		uint8_t was = plt[i];

		assert_false(cfi_expression_plt(plt, i, &base, &limit));
		if (i == 1)
			continue; /* another base is as good */
		plt[i] = 0xfe;
		assert_false(cfi_expression_plt(plt, sizeof(plt), &base, &limit));
		plt[i] = was;
	}
}

UNIT_TESTS(cfi_expression)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_plt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
