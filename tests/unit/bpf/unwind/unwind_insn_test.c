/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's decoder against the consumer's, over all code of this program and its
 * libraries. */
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "shared/elf/x86_insn.h"
#include "shared/tools/macro.h"

#include "tests/unit/consumer/unwind/testing/unwind_memory_testing.h"

#define UNWIND_HOST
#include "bpf/unwind/unwind_insn.h"

/* What the kernel side's effect is for the consumer's; it may give up (UNWIND_INSN_END) at any. */
static const uint8_t effects[] = {
	[X86_NONE] = UNWIND_INSN_NONE,
	[X86_SP_ADD] = UNWIND_INSN_SP_ADD,
	[X86_SP_FROM_FP] = UNWIND_INSN_SP_FROM_FP,
	[X86_SP_LOST] = UNWIND_INSN_END,
	[X86_FP_FROM_SP] = UNWIND_INSN_FP_FROM_SP,
	[X86_FP_PUSH] = UNWIND_INSN_FP_PUSH,
	[X86_FP_POP] = UNWIND_INSN_FP_POP,
	[X86_FP_STORE] = UNWIND_INSN_FP_STORE,
	[X86_FP_LOAD] = UNWIND_INSN_FP_LOAD,
	[X86_FP_LOST] = UNWIND_INSN_FP_LOST,
	[X86_LEAVE] = UNWIND_INSN_LEAVE,
	[X86_CALL] = UNWIND_INSN_CALL,
	[X86_BRANCH] = UNWIND_INSN_BRANCH,
	[X86_JUMP] = UNWIND_INSN_JUMP,
	[X86_JUMP_UNKNOWN] = UNWIND_INSN_END,
	[X86_RETURN] = UNWIND_INSN_RETURN,
	[X86_TRAP] = UNWIND_INSN_END,
};

struct compared {
	size_t insns, ended, of[ARRAY_SIZE(effects)];
};

static uint32_t decode(struct unwind_insn *i, const uint8_t *code, size_t left)
{
	*i = (struct unwind_insn){ .offset = 3 };
	memcpy(i->code + i->offset, code, MIN(left, (size_t)UNWIND_INSN_MAX));
	return (uint32_t)unwind_insn_read(i);
}

static bool takes_value(uint32_t effect)
{
	return effect == UNWIND_INSN_SP_ADD || effect == UNWIND_INSN_SP_FROM_FP ||
	       effect == UNWIND_INSN_FP_FROM_SP || effect == UNWIND_INSN_FP_STORE ||
	       effect == UNWIND_INSN_FP_LOAD;
}

/* Compares the instruction at `code`. Returns its bytes; 1 where the consumer cannot read it. */
static size_t compare(const uint8_t *code, size_t left, struct compared *c)
{
	struct x86_insn theirs;
	struct unwind_insn ours;
	uint32_t effect = decode(&ours, code, left);

	if (!x86_insn_read(code, left, &theirs))
		return 1;
	c->insns++;
	c->of[theirs.effect]++;
	c->ended += effect == UNWIND_INSN_END && effects[theirs.effect] != UNWIND_INSN_END;
	if (effect == UNWIND_INSN_END)
		return theirs.bytes;
	if (ours.bytes != theirs.bytes || effect != effects[theirs.effect])
		fail_msg("%02x %02x %02x %02x %02x %02x: %u bytes, effect %u; the consumer: %u, %u",
			 code[0], code[1], code[2], code[3], code[4], code[5], ours.bytes, effect,
			 theirs.bytes, (unsigned int)theirs.effect);
	if (takes_value(effect) && ours.value != theirs.value)
		fail_msg("%02x %02x %02x %02x %02x %02x: %lld; the consumer: %lld", code[0],
			 code[1], code[2], code[3], code[4], code[5], (long long)ours.value,
			 (long long)theirs.value);
	if (effect == UNWIND_INSN_JUMP || effect == UNWIND_INSN_BRANCH)
		assert_int_equal(ours.value + ours.bytes, theirs.target);
	return theirs.bytes;
}

static int compare_object(struct dl_phdr_info *info, size_t bytes, void *compared)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uint8_t *code = (const uint8_t *)info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		for (size_t at = 0; at < p->p_memsz;)
			at += compare(code + at, p->p_memsz - at, compared);
	}
	return 0;
}

/* The same lengths and effects, and nothing that compilers use often is given up. */
static void test_as_the_consumer(void **state)
{
	struct compared c = {};

	dl_iterate_phdr(compare_object, &c);
	assert_true(c.insns > 100000);
	assert_true(c.ended < c.insns / 100);
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++)
		assert_true(c.of[i] > 0);
}

/* Bytes at random: it ends, reads no byte that is not there and knows no length beyond the limit.
 */
static void test_any_bytes(void **state)
{
	struct compared c = {};
	uint32_t seed = 12345;

	for (int i = 0; i < 200000; i++) {
		uint8_t code[UNWIND_INSN_MAX];

		for (size_t at = 0; at < sizeof(code); at++) {
			seed = seed * 1664525 + 1013904223;
			code[at] = (uint8_t)(seed >> 24);
		}
		compare(code, sizeof(code), &c);
	}
	assert_true(c.insns > 50000);
}

/* Memory below the frame pointer is read or written; an address of it is not, nor that of r13. */
static void test_based(void **state)
{
	static const struct {
		uint8_t code[UNWIND_INSN_MAX];
		bool based;
	} rows[] = {
		{ { 0x48, 0x8b, 0x65, 0xf0 }, true },		     /* mov -0x10(%rbp),%rsp */
		{ { 0x4c, 0x89, 0xa5, 0, 0xff, 0xff, 0xff }, true }, /* mov %r12,-0x100(%rbp) */
		{ { 0x0f, 0xb6, 0x45, 0xff }, true },		     /* movzbl -1(%rbp),%eax */
		{ { 0x48, 0x8b, 0x45, 0x10 }, false },		     /* mov 0x10(%rbp),%rax */
		{ { 0x48, 0x8d, 0x45, 0xf0 }, false },		     /* lea -0x10(%rbp),%rax */
		{ { 0x49, 0x8b, 0x45, 0xf0 }, false },		     /* mov -0x10(%r13),%rax */
		{ { 0x48, 0x8b, 0x44, 0x0d, 0xf0 }, false },	     /* mov -0x10(%rbp,%rcx),%rax */
		{ { 0x0f, 0x1f, 0x45, 0xf0 }, false },		     /* nopl -0x10(%rbp) */
		{ { 0x48, 0x89, 0xe5 }, false },		     /* mov %rsp,%rbp */
	};
	struct unwind_insn i;

	for (size_t n = 0; n < ARRAY_SIZE(rows); n++) {
		decode(&i, rows[n].code, sizeof(rows[n].code));
		assert_int_equal(i.based, rows[n].based);
	}
}

UNIT_TESTS(unwind_insn)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_the_consumer),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_based),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
