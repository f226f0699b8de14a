/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86_opcodes.h: the bytes that follow each x86-64 opcode, and the operands that it writes.
 * Included by the two decoders only, shared/elf/x86_insn.c and bpf/unwind/unwind_insn.h. Source:
 * Intel SDM volume 2, appendix A, tables.
 */
#ifndef TROCAR_SHARED_ELF_X86_OPCODES_H
#define TROCAR_SHARED_ELF_X86_OPCODES_H

#define M   0x01 /* a modrm byte follows */
#define I1  0x02 /* an immediate of one byte */
#define I2  0x04 /* an immediate of two bytes */
#define I4  0x08 /* an immediate of four bytes, or two with the prefix 66 */
#define WR  0x10 /* writes all of the register */
#define WM  0x20 /* writes all of the operand that modrm names */
#define BAD 0x80 /* invalid, or privileged */

/* clang-format off */
/*
 * Opcodes of one byte: from 0x40 on by number; the arithmetic opcodes below 0x40 by their last
 * three bits.
 */
static const unsigned char flags_one[256] = {
	[0x06] = BAD, [0x07] = BAD, [0x0e] = BAD, [0x16] = BAD, [0x17] = BAD, [0x1e] = BAD,
	[0x1f] = BAD, [0x27] = BAD, [0x2f] = BAD, [0x37] = BAD, [0x3f] = BAD, [0x60] = BAD,
	[0x61] = BAD, [0x63] = M | WR, [0x68] = I4, [0x69] = M | I4 | WR, [0x6a] = I1,
	[0x6b] = M | I1 | WR, [0x80] = M | I1, [0x81] = M | I4 | WM, [0x82] = BAD,
	[0x83] = M | I1 | WM, [0x84] = M, [0x85] = M, [0x86] = M, [0x87] = M | WR | WM,
	[0x88] = M, [0x89] = M | WM, [0x8a] = M, [0x8b] = M | WR, [0x8c] = M | WM,
	[0x8d] = M | WR, [0x8e] = M, [0x8f] = M | WM, [0x9a] = BAD, [0xa8] = I1,
	[0xa9] = I4, [0xc0] = M | I1, [0xc1] = M | I1 | WM, [0xc2] = I2, [0xc6] = M | I1,
	[0xc7] = M | I4 | WM, [0xc8] = BAD, [0xca] = BAD, [0xcb] = BAD, [0xcd] = BAD,
	[0xce] = BAD, [0xcf] = BAD, [0xd0] = M, [0xd1] = M | WM, [0xd2] = M,
	[0xd3] = M | WM, [0xd4] = BAD, [0xd5] = BAD, [0xd6] = BAD, [0xd8] = M, [0xd9] = M,
	[0xda] = M, [0xdb] = M, [0xdc] = M, [0xdd] = M, [0xde] = M, [0xdf] = M,
	[0xe4] = I1, [0xe5] = I1, [0xe6] = I1, [0xe7] = I1, [0xea] = BAD, [0xf6] = M,
	[0xf7] = M | WM, [0xfe] = M, [0xff] = M | WM,
};

/* Opcodes of two bytes, the first of which is 0x0f. */
static const unsigned char flags_0f[256] = {
	[0x00 ... 0x03] = M, [0x04] = BAD, [0x07] = BAD, [0x0a] = BAD, [0x0c] = BAD,
	[0x0f] = BAD, [0x0d] = M, [0x10 ... 0x1f] = M, [0x20 ... 0x27] = BAD,
	[0x28 ... 0x2b] = M, [0x2c ... 0x2d] = M | WR, [0x2e ... 0x2f] = M, [0x30] = BAD,
	[0x32 ... 0x37] = BAD, [0x38 ... 0x3f] = BAD, [0x40 ... 0x50] = M | WR,
	[0x51 ... 0x6f] = M, [0x70 ... 0x73] = M | I1, [0x74 ... 0x76] = M,
	[0x78 ... 0x7d] = M, [0x7e] = M | WM, [0x7f] = M, [0x90 ... 0x9f] = M,
	[0xa0 ... 0xa1] = BAD, [0xa3] = M, [0xa4] = M | I1 | WM, [0xa5] = M | WM,
	[0xa6 ... 0xaa] = BAD, [0xab] = M | WM, [0xac] = M | I1 | WM, [0xad] = M | WM,
	[0xae] = M, [0xaf] = M | WR, [0xb0] = M, [0xb1] = M | WM, [0xb2] = BAD,
	[0xb3] = M | WM, [0xb4 ... 0xb5] = BAD, [0xb6 ... 0xb8] = M | WR, [0xb9] = BAD,
	[0xba] = M | I1 | WM, [0xbb] = M | WM, [0xbc ... 0xbf] = M | WR, [0xc0] = M,
	[0xc1] = M | WR | WM, [0xc2] = M | I1, [0xc3] = M, [0xc4] = M | I1,
	[0xc5] = M | I1 | WR, [0xc6] = M | I1, [0xc7] = M | WM, [0xd0 ... 0xd6] = M,
	[0xd7] = M | WR, [0xd8 ... 0xfe] = M, [0xff] = BAD,
};

/* clang-format on */

#endif
