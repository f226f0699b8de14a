/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "shared/elf/x86_insn.h"

#define BYTES(...) { __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* The assembler's bytes for it, and its meaning. */
static const struct {
	const char *text;
	uint8_t code[X86_INSN_MAX];
	size_t bytes;
	enum x86_effect effect;
	int64_t value;
} insns[] = {
	{ "push %rbx", BYTES(0x53), X86_SP_ADD, -8 },
	{ "push %r13", BYTES(0x41, 0x55), X86_SP_ADD, -8 },
	{ "push %rbp", BYTES(0x55), X86_FP_PUSH, -8 },
	{ "pop %rbp", BYTES(0x5d), X86_FP_POP, 8 },
	{ "pop %r12", BYTES(0x41, 0x5c), X86_SP_ADD, 8 },
	{ "pop %rsp", BYTES(0x5c), X86_SP_LOST, 8 },
	{ "push $5", BYTES(0x6a, 5), X86_SP_ADD, -8 },
	{ "push 8(%rax)", BYTES(0xff, 0x70, 8), X86_SP_ADD, -8 },
	{ "sub $24,%rsp", BYTES(0x48, 0x83, 0xec, 24), X86_SP_ADD, -24 },
	{ "sub $-128,%rsp", BYTES(0x48, 0x83, 0xec, 0x80), X86_SP_ADD, 128 },
	{ "add $0x1000,%rsp", BYTES(0x48, 0x81, 0xc4, 0, 0x10, 0, 0), X86_SP_ADD, 0x1000 },
	{ "sub $24,%r12", BYTES(0x49, 0x83, 0xec, 24), X86_NONE, 0 },
	{ "cmp $24,%rsp", BYTES(0x48, 0x83, 0xfc, 24), X86_NONE, 0 },
	{ "and $-16,%rsp", BYTES(0x48, 0x83, 0xe4, 0xf0), X86_SP_LOST, 0 },
	{ "sub %rax,%rsp", BYTES(0x48, 0x29, 0xc4), X86_SP_LOST, 0 },
	{ "cmp %rax,%rsp", BYTES(0x48, 0x39, 0xc4), X86_NONE, 0 },
	{ "lea -8(%rsp),%rsp", BYTES(0x48, 0x8d, 0x64, 0x24, 0xf8), X86_SP_ADD, -8 },
	{ "lea -16(%rbp),%rsp", BYTES(0x48, 0x8d, 0x65, 0xf0), X86_SP_FROM_FP, -16 },
	{ "lea (%rsp,%rax),%rsp", BYTES(0x48, 0x8d, 0x24, 0x04), X86_SP_LOST, 0 },
	{ "lea 16(%rsp),%rbp", BYTES(0x48, 0x8d, 0x6c, 0x24, 16), X86_FP_FROM_SP, 16 },
	{ "lea 16(%rsp),%rax", BYTES(0x48, 0x8d, 0x44, 0x24, 16), X86_NONE, 0 },
	{ "mov %rsp,%rbp", BYTES(0x48, 0x89, 0xe5), X86_FP_FROM_SP, 0 },
	{ "mov %rsp,%rbp", BYTES(0x48, 0x8b, 0xec), X86_FP_FROM_SP, 0 },
	{ "mov %rbp,%rsp", BYTES(0x48, 0x89, 0xec), X86_SP_FROM_FP, 0 },
	{ "mov %rdi,%rsp", BYTES(0x48, 0x89, 0xfc), X86_SP_LOST, 0 },
	{ "mov %rsp,%rdi", BYTES(0x48, 0x89, 0xe7), X86_NONE, 0 },
	{ "mov %rbp,8(%rsp)", BYTES(0x48, 0x89, 0x6c, 0x24, 8), X86_FP_STORE, 8 },
	{ "mov 8(%rsp),%rbp", BYTES(0x48, 0x8b, 0x6c, 0x24, 8), X86_FP_LOAD, 8 },
	{ "mov %rbp,8(%rax)", BYTES(0x48, 0x89, 0x68, 8), X86_NONE, 0 },
	{ "mov 8(%rax),%rbp", BYTES(0x48, 0x8b, 0x68, 8), X86_FP_LOST, 0 },
	{ "mov %edi,%ebp", BYTES(0x89, 0xfd), X86_FP_LOST, 0 },
	{ "mov $1,%ebp", BYTES(0xbd, 1, 0, 0, 0), X86_FP_LOST, 0 },
	{ "xor %ebp,%ebp", BYTES(0x31, 0xed), X86_FP_LOST, 0 },
	{ "xor %r13d,%r13d", BYTES(0x45, 0x31, 0xed), X86_NONE, 0 },
	{ "mov $0x8877665544332211,%rax", BYTES(0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8), X86_NONE, 0 },
	{ "xchg %rax,%rsp", BYTES(0x48, 0x94), X86_SP_LOST, 0 },
	{ "cmove %rax,%rbp", BYTES(0x48, 0x0f, 0x44, 0xe8), X86_FP_LOST, 0 },
	{ "movzbl %al,%ebp", BYTES(0x0f, 0xb6, 0xe8), X86_FP_LOST, 0 },
	{ "movaps %xmm4,(%rsp)", BYTES(0x0f, 0x29, 0x24, 0x24), X86_NONE, 0 },
	{ "movq %xmm0,%rbp", BYTES(0x66, 0x48, 0x0f, 0x7e, 0xc5), X86_FP_LOST, 0 },
	{ "vpxor %xmm4,%xmm4,%xmm4", BYTES(0xc5, 0xd9, 0xef, 0xe4), X86_NONE, 0 },
	{ "andn %rax,%rbx,%rbp", BYTES(0xc4, 0xe2, 0xe0, 0xf2, 0xe8), X86_FP_LOST, 0 },
	{ "vmovdqu64 (%rdi),%zmm5", BYTES(0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x2f), X86_NONE, 0 },
	{ "pshufd $4,%xmm0,%xmm4", BYTES(0x66, 0x0f, 0x70, 0xe0, 4), X86_NONE, 0 },
	{ "test $5,%sil", BYTES(0x40, 0xf6, 0xc6, 5), X86_NONE, 0 },
	{ "neg %rbp", BYTES(0x48, 0xf7, 0xdd), X86_FP_LOST, 0 },
	{ "mul %rbp", BYTES(0x48, 0xf7, 0xe5), X86_NONE, 0 },
	{ "rep stos %al,(%rdi)", BYTES(0xf3, 0xaa), X86_NONE, 0 },
	{ "movabs 0x1234,%al", BYTES(0xa0, 1, 2, 3, 4, 5, 6, 7, 8), X86_NONE, 0 },
	{ "leave", BYTES(0xc9), X86_LEAVE, 0 },
	{ "ret", BYTES(0xc3), X86_RETURN, 0 },
	{ "repz ret", BYTES(0xf3, 0xc3), X86_RETURN, 0 },
	{ "ret $8", BYTES(0xc2, 8, 0), X86_RETURN, 0 },
	{ "hlt", BYTES(0xf4), X86_TRAP, 0 },
	{ "ud2", BYTES(0x0f, 0x0b), X86_TRAP, 0 },
	{ "syscall", BYTES(0x0f, 0x05), X86_NONE, 0 },
	{ "call *%r9", BYTES(0x41, 0xff, 0xd1), X86_CALL, -8 },
	{ "jmp *%rax", BYTES(0xff, 0xe0), X86_JUMP_UNKNOWN, -8 },
	{ "notrack jmp *%rdx", BYTES(0x3e, 0xff, 0xe2), X86_JUMP_UNKNOWN, -8 },
};

static void test_effects(void **state)
{
	struct x86_insn insn;

	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++) {
		if (!x86_insn_read(insns[i].code, sizeof(insns[i].code), &insn))
			fail_msg("%s: not read", insns[i].text);
		if (insn.bytes != insns[i].bytes || insn.effect != insns[i].effect)
			fail_msg("%s: %u bytes, effect %d", insns[i].text, insn.bytes, insn.effect);
		if (insns[i].value != 0 && insn.value != insns[i].value)
			fail_msg("%s: value %ld", insns[i].text, (long)insn.value);
	}
}

/* Every cut of every one is refused. */
static void test_cut(void **state)
{
	struct x86_insn insn;

	for (size_t i = 0; i < sizeof(insns) / sizeof(*insns); i++)
		for (size_t left = 0; left < insns[i].bytes; left++)
			if (x86_insn_read(insns[i].code, left, &insn) && insn.bytes > left)
				fail_msg("%s: read beyond %zu", insns[i].text, left);
}

static void leads(const uint8_t *code, size_t bytes, enum x86_effect effect, int64_t target)
{
	struct x86_insn insn;

	assert_true(x86_insn_read(code, bytes, &insn));
	assert_int_equal(insn.bytes, bytes);
	assert_int_equal(insn.effect, effect);
	assert_true(insn.has_target);
	assert_int_equal(insn.target, target);
}

#define LEADS(effect, target, ...)                                                                \
	leads((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), effect, \
	      target)

static void test_targets(void **state)
{
	LEADS(X86_CALL, 5 + 0x10, 0xe8, 0x10, 0, 0, 0);
	LEADS(X86_JUMP, 2 - 2, 0xeb, 0xfe);
	LEADS(X86_JUMP, 5 - 16, 0xe9, 0xf0, 0xff, 0xff, 0xff);
	LEADS(X86_BRANCH, 2 + 5, 0x74, 5);
	LEADS(X86_BRANCH, 6 + 0x100, 0x0f, 0x84, 0, 1, 0, 0);
	LEADS(X86_NONE, 7 + 8, 0x48, 0x8d, 0x05, 8, 0, 0, 0); /* lea 8(%rip),%rax */
}

static void test_refused(void **state)
{
	static const uint8_t bad[][X86_INSN_MAX] = { { 0x06 }, { 0xea }, { 0x0f, 0x04 }, { 0xc8 } };
	static const uint8_t prefixes[X86_INSN_MAX] = { 0x66, 0x66, 0x66, 0x66, 0x66,
							0x66, 0x66, 0x66, 0x66, 0x66,
							0x66, 0x66, 0x66, 0x66, 0x66 };
	struct x86_insn insn;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(x86_insn_read(bad[i], sizeof(bad[i]), &insn));
	assert_false(x86_insn_read(prefixes, sizeof(prefixes), &insn));
}

UNIT_TESTS(x86_insn)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_effects),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
