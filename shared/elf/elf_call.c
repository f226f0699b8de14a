/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/elf_call.h"

#include <string.h>

#include "shared/elf/x86_insn.h"
#include "shared/tools/macro.h"

#define ARM_BYTES 4

/* Returns whether `code` ends with a call instruction, of any length. */
static bool ends_x86_call(const uint8_t *code, size_t bytes)
{
	struct x86_insn insn;

	for (size_t n = 2; n <= bytes; n++)
		if (x86_insn_read(code + bytes - n, n, &insn) && insn.bytes == n &&
		    insn.effect == X86_CALL)
			return true;
	return false;
}

/*
 * Returns whether `code` ends with BL, or with BLR or a variant of it with pointer authentication
 * (Arm ARM, C4.1: branches).
 */
static bool ends_arm_call(const uint8_t *code, size_t bytes)
{
	uint32_t word;

	if (bytes < ARM_BYTES)
		return false;
	memcpy(&word, code + bytes - ARM_BYTES, ARM_BYTES);
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfefff000) == 0xd63f0000;
}

bool elf_call_ends_at(const struct elf_image *image, uint64_t offset)
{
	uint8_t code[X86_INSN_MAX];
	size_t bytes = (size_t)MIN(offset, (uint64_t)sizeof(code));
	uint16_t machine; /* same offset in ELF32 and ELF64 */

	if (elf_reader_at(image, offsetof(Elf64_Ehdr, e_machine), &machine, sizeof(machine)) < 0 ||
	    elf_reader_at(image, offset - bytes, code, bytes) < 0)
		return true;
	switch (machine) {
	case EM_X86_64:
	case EM_386:
		return ends_x86_call(code, bytes);
	case EM_AARCH64:
		return ends_arm_call(code, bytes);
	default:
		return true;
	}
}
