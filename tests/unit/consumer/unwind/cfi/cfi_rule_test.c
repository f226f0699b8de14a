/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "consumer/unwind/cfi/cfi_rule.h"

/* CFA = rsp + 8, return address at CFA - 8. */
static const struct cfi_state plain = {
	.cfa = { .kind = CFI_OFFSET, .offset = 8 },
	.cfa_register = CFI_SP,
	.pc = { .kind = CFI_OFFSET, .offset = -8 },
};

#define EXPRESSION(kind_, ...)                                               \
	((struct cfi_place){ .kind = (kind_),                                \
			     .expression = (const uint8_t[]){ __VA_ARGS__ }, \
			     .expression_bytes = sizeof((const uint8_t[]){ __VA_ARGS__ }) })

static struct unwind_rule rule_of(const struct cfi_state *s, bool signal)
{
	struct unwind_rule rule = { 0 }, quick = { 0 };

	assert_int_equal(cfi_rule_of(s, signal, &rule), CFI_LOSS_NONE);
	if (cfi_rule_plain(s, &quick) && !signal)
		assert_memory_equal(&rule, &quick, sizeof(rule));
	return rule;
}

static void loses(const struct cfi_state *s, enum cfi_loss expected)
{
	struct unwind_rule rule = { 0 };

	assert_int_equal(cfi_rule_of(s, false, &rule), expected);
	assert_false(cfi_rule_plain(s, &rule));
	if (expected == CFI_LOSS_FRAME_POINTER)
		assert_int_equal(UNWIND_SAVED_FP(rule.saved), UNWIND_FP_UNKNOWN);
}

static void test_plain(void **state)
{
	struct cfi_state s = plain;
	struct unwind_rule rule = rule_of(&s, false);

	assert_true(cfi_rule_plain(&s, &rule));
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.cfa_offset, 8);
	assert_int_equal(rule.saved, UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_SAME));
	assert_int_equal(rule.fp_offset, 0);
	s.cfa_register = CFI_FP;
	s.cfa.offset = 1 << 20;
	s.fp = (struct cfi_place){ .kind = CFI_OFFSET, .offset = -16 };
	rule = rule_of(&s, false);
	assert_int_equal(rule.cfa, UNWIND_CFA_FP);
	assert_int_equal(rule.cfa_offset, 1 << 20);
	assert_int_equal(UNWIND_SAVED_FP(rule.saved), UNWIND_FP_CFA);
	assert_int_equal(rule.fp_offset, -16);
	rule = rule_of(&s, true);
	assert_int_equal(rule.saved,
			 UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA) | UNWIND_SAVED_EXACT);
}

static void test_end(void **state)
{
	struct cfi_state s = { .pc = { .kind = CFI_UNDEFINED } };

	assert_int_equal(rule_of(&s, false).cfa, UNWIND_CFA_END);
}

static void test_plt(void **state)
{
	struct cfi_state s = plain;
	struct unwind_rule rule;

	s.cfa = EXPRESSION(CFI_EXPRESSION, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
			   0x22);
	rule = rule_of(&s, false);
	assert_int_equal(rule.cfa, UNWIND_CFA_PLT);
	assert_int_equal(UNWIND_LOW(rule.cfa_offset), 8);
	assert_int_equal(UNWIND_HIGH(rule.cfa_offset), 11);
}

/* The information of glibc's restorer: everything lies in the context behind rsp. */
static void test_signal(void **state)
{
	struct cfi_state s = {
		.cfa = EXPRESSION(CFI_EXPRESSION, 0x77, 0xa0, 1, 0x06),
		.sp = EXPRESSION(CFI_EXPRESSION, 0x77, 0xa0, 1),
		.fp = EXPRESSION(CFI_EXPRESSION, 0x77, 0xf8, 0),
		.pc = EXPRESSION(CFI_EXPRESSION, 0x77, 0xa8, 1),
	};
	struct unwind_rule rule = rule_of(&s, true);

	assert_int_equal(rule.cfa, UNWIND_CFA_SP_MEMORY);
	assert_int_equal(UNWIND_LOW(rule.cfa_offset), 160);
	assert_int_equal(UNWIND_HIGH(rule.cfa_offset), 0);
	assert_int_equal(rule.saved,
			 UNWIND_SAVED(UNWIND_RA_CONTEXT, UNWIND_FP_SP) | UNWIND_SAVED_EXACT);
	assert_int_equal(rule.fp_offset, 120);
	s.pc = EXPRESSION(CFI_EXPRESSION, 0x77, 0xb0, 1);
	loses(&s, CFI_LOSS_RETURN_ADDRESS);
	s.sp = EXPRESSION(CFI_EXPRESSION, 0x77, 0xa8, 1);
	loses(&s, CFI_LOSS_STACK_POINTER);
}

static void test_memory(void **state)
{
	struct cfi_state s = plain;
	struct unwind_rule rule;

	s.cfa = EXPRESSION(CFI_EXPRESSION, 0x76, 0x58, 0x06, 0x23, 8);
	rule = rule_of(&s, false);
	assert_int_equal(rule.cfa, UNWIND_CFA_FP_MEMORY);
	assert_int_equal(UNWIND_LOW(rule.cfa_offset), -40);
	assert_int_equal(UNWIND_HIGH(rule.cfa_offset), 8);
}

/* The realigned frames of GCC keep the caller's rbp at rbp. */
static void test_frame_pointer(void **state)
{
	struct cfi_state s = plain;

	s.fp = EXPRESSION(CFI_EXPRESSION, 0x76, 0);
	assert_int_equal(UNWIND_SAVED_FP(rule_of(&s, false).saved), UNWIND_FP_FP);
	s.fp = EXPRESSION(CFI_VALUE_EXPRESSION, 0x77, 8, 0x06);
	assert_int_equal(UNWIND_SAVED_FP(rule_of(&s, false).saved), UNWIND_FP_SP);
	assert_int_equal(rule_of(&s, false).fp_offset, 8);
	s.fp = (struct cfi_place){ .kind = CFI_SAME };
	assert_int_equal(UNWIND_SAVED_FP(rule_of(&s, false).saved), UNWIND_FP_SAME);
	s.fp = (struct cfi_place){ .kind = CFI_UNDEFINED };
	assert_int_equal(UNWIND_SAVED_FP(rule_of(&s, false).saved), UNWIND_FP_UNKNOWN);
	s.fp = (struct cfi_place){ .kind = CFI_REGISTER, .reg = 3 };
	loses(&s, CFI_LOSS_FRAME_POINTER);
	s.fp = (struct cfi_place){ .kind = CFI_VALUE_OFFSET, .offset = -16 };
	loses(&s, CFI_LOSS_FRAME_POINTER);
	s.fp = (struct cfi_place){ .kind = CFI_OFFSET, .offset = -32776 };
	loses(&s, CFI_LOSS_FRAME_POINTER);
	s.fp = EXPRESSION(CFI_VALUE_EXPRESSION, 0x77, 8);
	loses(&s, CFI_LOSS_FRAME_POINTER);
}

static void test_lost(void **state)
{
	struct cfi_state s = plain;

	s.cfa_register = 3;
	loses(&s, CFI_LOSS_CFA_REGISTER);
	s = plain;
	s.cfa.kind = CFI_UNSET;
	loses(&s, CFI_LOSS_BAD_PROGRAM);
	s = plain;
	s.cfa.offset = 1LL << 31;
	loses(&s, CFI_LOSS_CFA_RANGE);
	s = plain;
	s.cfa = EXPRESSION(CFI_EXPRESSION, 0x77, 8, 0x79, 0, 0x22);
	loses(&s, CFI_LOSS_CFA_EXPRESSION);
	s.cfa = EXPRESSION(CFI_EXPRESSION, 0x77, 0x80, 0x80, 2, 0x06);
	loses(&s, CFI_LOSS_CFA_RANGE);
	s = plain;
	s.pc = (struct cfi_place){ .kind = CFI_REGISTER, .reg = 1 };
	loses(&s, CFI_LOSS_RETURN_ADDRESS);
	s.pc = (struct cfi_place){ .kind = CFI_UNSET };
	loses(&s, CFI_LOSS_RETURN_ADDRESS);
	s = plain;
	s.sp = (struct cfi_place){ .kind = CFI_SAME };
	loses(&s, CFI_LOSS_STACK_POINTER);
	s.sp = (struct cfi_place){ .kind = CFI_OFFSET, .offset = -16 };
	loses(&s, CFI_LOSS_STACK_POINTER);
}

/* A return address elsewhere needs the room of the frame pointer's offset. */
static void test_alone(void **state)
{
	struct cfi_state s = plain;
	struct unwind_rule rule;

	s.pc.offset = -24;
	rule = rule_of(&s, false);
	assert_int_equal(UNWIND_SAVED_RA(rule.saved), UNWIND_RA_ALONE);
	assert_int_equal(rule.fp_offset, -24);
	s.fp = (struct cfi_place){ .kind = CFI_OFFSET, .offset = -16 };
	loses(&s, CFI_LOSS_RETURN_ADDRESS);
}

/* Of registers it may be in rdi, where the C library's vfork has it. */
static void test_in_register(void **state)
{
	struct cfi_state s = plain;
	struct unwind_rule rule;

	s.pc = (struct cfi_place){ .kind = CFI_REGISTER, .reg = 5 };
	s.cfa.offset = 0;
	rule = rule_of(&s, false);
	assert_int_equal(rule.cfa, UNWIND_CFA_SP);
	assert_int_equal(rule.cfa_offset, 0);
	assert_int_equal(UNWIND_SAVED_RA(rule.saved), UNWIND_RA_REGISTER);
	assert_int_equal(cfi_rule_of(&s, true, &rule), CFI_LOSS_RETURN_ADDRESS);
	s.cfa.offset = -8;
	loses(&s, CFI_LOSS_RETURN_ADDRESS);
	s.cfa.offset = 8;
	s.fp = (struct cfi_place){ .kind = CFI_OFFSET, .offset = -16 };
	loses(&s, CFI_LOSS_RETURN_ADDRESS);
}

UNIT_TESTS(cfi_rule)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_register),   cmocka_unit_test(test_plain),
		cmocka_unit_test(test_end),	      cmocka_unit_test(test_plt),
		cmocka_unit_test(test_signal),	      cmocka_unit_test(test_memory),
		cmocka_unit_test(test_frame_pointer), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
