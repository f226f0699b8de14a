/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_call_test.c: whether a call may end at a place of a file. */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "shared/elf/elf_call.h"
#include "shared/tools/macro.h"

#define BYTES(...) { __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static const struct {
	const char *what;
	uint16_t machine;
	uint8_t code[16];
	size_t bytes;
	bool call;
} rows[] = {
	{ "call rel32", EM_X86_64, BYTES(0xc3, 0xe8, 1, 2, 3, 4), true },
	{ "call *%rax", EM_X86_64, BYTES(0x90, 0x90, 0xff, 0xd0), true },
	{ "call *%r9", EM_X86_64, BYTES(0x90, 0x41, 0xff, 0xd1), true },
	{ "call *8(%rbx)", EM_X86_64, BYTES(0x90, 0xff, 0x53, 8), true },
	{ "call *0x100(%rip)", EM_X86_64, BYTES(0xff, 0x15, 0, 1, 0, 0), true },
	{ "call *0x100(%rax,%rcx,8)", EM_X86_64, BYTES(0xff, 0x94, 0xc8, 0, 1, 0, 0), true },
	{ "bnd call", EM_X86_64, BYTES(0xf2, 0xe8, 1, 2, 3, 4), true },
	{ "ret", EM_X86_64, BYTES(0x31, 0xc0, 0x5b, 0xc3), false },
	{ "nop", EM_X86_64, BYTES(0xc3, 0x66, 0x0f, 0x1f, 0x44, 0, 0), false },
	{ "int3", EM_X86_64, BYTES(0xcc, 0xcc, 0xcc, 0xcc, 0xcc), false },
	{ "jmp rel32", EM_X86_64, BYTES(0xe9, 1, 2, 3, 4), false },
	{ "ud2", EM_X86_64, BYTES(0x0f, 0x0b), false },
	{ "call rel32", EM_386, BYTES(0xe8, 1, 2, 3, 4), true },
	{ "ret", EM_386, BYTES(0x5d, 0xc3), false },
	{ "bl", EM_AARCH64, BYTES(0x05, 0, 0, 0x94), true },
	{ "blr x8", EM_AARCH64, BYTES(0x00, 0x01, 0x3f, 0xd6), true },
	{ "blraaz x8", EM_AARCH64, BYTES(0x1f, 0x09, 0x3f, 0xd6), true },
	{ "ret", EM_AARCH64, BYTES(0xc0, 0x03, 0x5f, 0xd6), false },
	{ "nop", EM_AARCH64, BYTES(0x1f, 0x20, 0x03, 0xd5), false },
	{ "of an unknown machine", EM_RISCV, BYTES(0x82, 0x80), true },
};

static void test_calls(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t file[sizeof(Elf64_Ehdr) + 32] = { 0 };
		struct elf_image image = { .fd = -1, .memory = file, .bytes = sizeof(file) };

		memcpy(file + offsetof(Elf64_Ehdr, e_machine), &rows[i].machine,
		       sizeof(rows[i].machine));
		memcpy(file + sizeof(Elf64_Ehdr) + 16, rows[i].code, rows[i].bytes);
		if (elf_call_ends_at(&image, sizeof(Elf64_Ehdr) + 16 + rows[i].bytes) !=
		    rows[i].call)
			fail_msg("%s", rows[i].what);
	}
}

/* Nothing is known about unreadable code. */
static void test_unreadable(void **state)
{
	uint8_t file[sizeof(Elf64_Ehdr)] = { 0 };
	struct elf_image image = { .fd = -1, .memory = file, .bytes = sizeof(file) };
	const uint16_t machine = EM_X86_64;

	memcpy(file + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine));
	assert_false(elf_call_ends_at(&image, 0));
	assert_true(elf_call_ends_at(&image, sizeof(file) + 1));
	assert_true(elf_call_ends_at(&image, UINT64_MAX));
	image.bytes = 8;
	assert_true(elf_call_ends_at(&image, 8));
}

UNIT_TESTS(elf_call)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
