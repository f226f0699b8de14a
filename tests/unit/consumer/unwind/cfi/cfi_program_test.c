/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <string.h>

#include "consumer/unwind/cfi/cfi_program.h"

static const struct cfi_cie cie = { .code_align = 1, .data_align = -8, .encoding = CFI_ABSOLUTE };
static struct cfi_section section;

/* What a CIE leaves: CFA = rsp + 8, return address at CFA - 8. */
static const struct cfi_state initial = {
	.cfa = { .kind = CFI_OFFSET, .offset = 8 },
	.cfa_register = CFI_SP,
	.pc = { .kind = CFI_OFFSET, .offset = -8 },
};

static struct cfi_program p;

static void start(const uint8_t *code, size_t bytes)
{
	section = (struct cfi_section){ .data = (uint8_t *)code, .bytes = bytes };
	cfi_program_start(&p, &section, &cie, &initial,
			  (struct cfi_bytes){ .at = code, .end = code + bytes }, 0x1000);
}

#define START(...) start((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void cfa_is(uint64_t reg, int64_t offset)
{
	assert_int_equal(p.state.cfa.kind, CFI_OFFSET);
	assert_int_equal(p.state.cfa_register, reg);
	assert_int_equal(p.state.cfa.offset, offset);
}

static void fp_is(enum cfi_kind kind, int64_t offset)
{
	assert_int_equal(p.state.fp.kind, kind);
	assert_int_equal(p.state.fp.offset, offset);
}

/* push %rbp; mov %rsp,%rbp; ... leave; ret */
static void test_function(void **state)
{
	START(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x80, 0x0c, 7, 8, 0xc6);
	assert_int_equal(cfi_program_next(&p), 1);
	assert_int_equal(p.from, 0x1000);
	assert_int_equal(p.to, 0x1001);
	cfa_is(CFI_SP, 8);
	assert_int_equal(cfi_program_next(&p), 1);
	assert_int_equal(p.from, 0x1001);
	cfa_is(CFI_SP, 16);
	fp_is(CFI_OFFSET, -16);
	assert_int_equal(cfi_program_next(&p), 1);
	assert_int_equal(p.to, 0x1084);
	cfa_is(CFI_FP, 16);
	assert_int_equal(cfi_program_next(&p), 0);
	assert_int_equal(p.from, 0x1084);
	cfa_is(CFI_SP, 8);
	fp_is(CFI_UNSET, 0);
}

static void test_changed(void **state)
{
	START(0x41, 0x83, 2, 0x41, 0x0e, 16);
	assert_int_equal(cfi_program_next(&p), 1);
	assert_true(p.changed);
	p.changed = false;
	assert_int_equal(cfi_program_next(&p), 1);
	assert_false(p.changed); /* rbx is not followed */
	assert_int_equal(cfi_program_next(&p), 0);
	assert_true(p.changed);
}

static void test_advances(void **state)
{
	START(0x03, 0, 1, 0x04, 0, 0, 1, 0, 0x40, 0x01, 0, 0x20, 1, 0, 0, 0, 0, 0);
	assert_int_equal(cfi_program_next(&p), 1);
	assert_int_equal(p.to, 0x1100);
	assert_int_equal(cfi_program_next(&p), 1);
	assert_int_equal(p.to, 0x11100);
	assert_int_equal(cfi_program_next(&p), 1); /* an advance by 0 is none */
	assert_int_equal(p.to, 0x12000);
	assert_int_equal(cfi_program_next(&p), 0);
	START(0x01, 0, 0x0f, 0, 0, 0, 0, 0, 0); /* backwards */
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
}

static void test_every_encoding(void **state)
{
	START(0x05, 6, 3);
	assert_int_equal(cfi_program_next(&p), 0);
	fp_is(CFI_OFFSET, -24);
	START(0x11, 6, 0x7d);
	assert_int_equal(cfi_program_next(&p), 0);
	fp_is(CFI_OFFSET, 24);
	START(0x2f, 6, 3);
	assert_int_equal(cfi_program_next(&p), 0);
	fp_is(CFI_OFFSET, 24);
	START(0x14, 6, 2);
	assert_int_equal(cfi_program_next(&p), 0);
	fp_is(CFI_VALUE_OFFSET, -16);
	START(0x15, 6, 0x7e);
	assert_int_equal(cfi_program_next(&p), 0);
	fp_is(CFI_VALUE_OFFSET, 16);
	START(0x09, 6, 3);
	assert_int_equal(cfi_program_next(&p), 0);
	assert_int_equal(p.state.fp.kind, CFI_REGISTER);
	assert_int_equal(p.state.fp.reg, 3);
	START(0x86, 2, 0x06, 6, 0x07, 16, 0x08, 7);
	assert_int_equal(cfi_program_next(&p), 0);
	fp_is(CFI_UNSET, 0);
	assert_int_equal(p.state.pc.kind, CFI_UNDEFINED);
	assert_int_equal(p.state.sp.kind, CFI_SAME);
	START(0x12, 6, 0x7c, 0x2e, 0x20);
	assert_int_equal(cfi_program_next(&p), 0);
	cfa_is(CFI_FP, 32);
	START(0x13, 0x7c);
	assert_int_equal(cfi_program_next(&p), 0);
	cfa_is(CFI_SP, 32);
	START(0x10, 6, 2, 0x76, 0, 0x16, 16, 1, 0x30, 0x0f, 2, 0x77, 0);
	assert_int_equal(cfi_program_next(&p), 0);
	assert_int_equal(p.state.fp.kind, CFI_EXPRESSION);
	assert_int_equal(p.state.fp.expression_bytes, 2);
	assert_int_equal(p.state.pc.kind, CFI_VALUE_EXPRESSION);
	assert_int_equal(p.state.cfa.kind, CFI_EXPRESSION);
	assert_int_equal(p.state.cfa.expression[0], 0x77);
}

static void test_remember(void **state)
{
	uint8_t code[CFI_REMEMBER_MAX + 1];

	START(0x0e, 16, 0x0a, 0x0e, 24, 0x86, 2, 0x41, 0x0b);
	assert_int_equal(cfi_program_next(&p), 1);
	cfa_is(CFI_SP, 24);
	assert_int_equal(cfi_program_next(&p), 0);
	cfa_is(CFI_SP, 16);
	fp_is(CFI_UNSET, 0);
	START(0x0b);
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
	memset(code, 0x0a, sizeof(code));
	start(code, CFI_REMEMBER_MAX);
	assert_int_equal(cfi_program_next(&p), 0);
	start(code, CFI_REMEMBER_MAX + 1);
	assert_int_equal(cfi_program_next(&p), -E2BIG);
}

static void test_broken(void **state)
{
	static const uint8_t unknown[] = { 0x17, 0x1c, 0x1d, 0x2d, 0x30, 0x3f };

	for (size_t i = 0; i < sizeof(unknown); i++) {
		start(&unknown[i], 1);
		assert_int_equal(cfi_program_next(&p), -EBADMSG);
	}
	START(0x0f, 2, 0x77, 0, 0x0e, 8); /* an offset of an expression */
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
	START(0x0f, 2, 0x77, 0, 0x0d, 6);
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
	START(0x86); /* cut */
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
	START(0x03, 1);
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
	START(0x0f, 3, 0x77, 0); /* a block beyond the end */
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
	cfi_program_start(&p, &section, &cie, &initial,
			  (struct cfi_bytes){ .at = (const uint8_t *)"\x7f", .end = NULL }, 0);
	p.code.end = p.code.at + 1;
	p.to = UINT64_MAX - 1; /* beyond the last address */
	assert_int_equal(cfi_program_next(&p), -EBADMSG);
}

UNIT_TESTS(cfi_program)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function), cmocka_unit_test(test_changed),
		cmocka_unit_test(test_advances), cmocka_unit_test(test_every_encoding),
		cmocka_unit_test(test_remember), cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
