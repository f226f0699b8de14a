/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/x86_insn.h"

#include <string.h>

#include "shared/elf/x86_opcodes.h"

#define SP 4
#define FP 5

#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

enum map { MAP_ONE, MAP_0F, MAP_38, MAP_3A };

struct decoder {
	const uint8_t *at, *end;
	bool cut;
	uint8_t rex, op;
	enum map map;
	bool small, narrow, vex; /* prefixes 66 and 67; VEX or EVEX encoding */
	uint8_t vector;		 /* the register of VEX.vvvv, which modrm does not have */
	uint8_t flags;
	uint8_t mod, reg, rm; /* register numbers with their fourth bit */
	bool memory, indexed, relative;
	uint8_t base;
	int64_t displacement, immediate;
};

static uint8_t next_byte(struct decoder *d)
{
	if (d->at == d->end) {
		d->cut = true;
		return 0;
	}
	return *d->at++;
}

/* Reads a signed number of `bytes` bytes. */
static int64_t read_number(struct decoder *d, size_t bytes)
{
	uint64_t word = 0;

	if ((size_t)(d->end - d->at) < bytes) {
		d->cut = true;
		d->at = d->end;
		return 0;
	}
	if (bytes == 0)
		return 0;
	memcpy(&word, d->at, bytes);
	d->at += bytes;
	return (int64_t)(word << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

static uint8_t flags_of_one(uint8_t op)
{
	static const uint8_t arithmetic[8] = { M, M | WM, M, M | WR, I1, I4, BAD, BAD };

	if (flags_one[op] != 0)
		return flags_one[op];
	if (op < 0x40) { /* comparisons, from 0x38 on, write nothing */
		uint8_t flags = arithmetic[op & 7];

		return op >= 0x38 ? flags & (uint8_t) ~(WR | WM) : flags;
	}
	if ((op & 0xf8) == 0xb0)
		return I1;
	return 0;
}

static uint8_t flags_of(const struct decoder *d)
{
	switch (d->map) {
	case MAP_ONE:
		return flags_of_one(d->op);
	case MAP_0F: /* with VEX, 0x41 to 0x4b write mask registers */
		return d->vex && (d->op & 0xf0) == 0x40 ? M : flags_0f[d->op];
	case MAP_38:
		return d->op >= 0xf0 && d->op <= 0xf7 ? M | WR : M;
	default:
		return M | I1 | (d->op >= 0x14 && d->op <= 0x17 ? WM : 0) |
		       (d->op == 0xf0 ? WR : 0);
	}
}

/* Reads a VEX prefix of two or three bytes, or an EVEX prefix of four, and the opcode after it. */
static bool read_vex(struct decoder *d, uint8_t kind)
{
	uint8_t a = next_byte(d), b;

	d->vex = true;
	if (kind == 0xc5) {
		d->rex = a & 0x80 ? 0 : REX_R;
		d->map = MAP_0F;
		d->vector = (uint8_t)(~a >> 3 & 15);
		d->op = next_byte(d);
		return true;
	}
	b = next_byte(d);
	if (kind == 0x62)
		next_byte(d);
	d->rex = (uint8_t)((a & 0x80 ? 0 : REX_R) | (a & 0x40 ? 0 : REX_X) |
			   (a & 0x20 ? 0 : REX_B) | (b & 0x80 ? REX_W : 0));
	d->vector = (uint8_t)(~b >> 3 & 15);
	d->map = (enum map)(a & 3);
	d->op = next_byte(d);
	return d->map != MAP_ONE;
}

/* Reads the prefixes, and the opcode with its map. */
static bool read_opcode(struct decoder *d)
{
	uint8_t byte = next_byte(d);

	while (byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0xf0 || byte == 0x2e ||
	       byte == 0x36 || byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65 ||
	       byte == 0x67) {
		d->narrow |= byte == 0x67;
		d->small |= byte == 0x66;
		byte = next_byte(d);
	}
	if (byte == 0xc4 || byte == 0xc5 || byte == 0x62)
		return read_vex(d, byte);
	if ((byte & 0xf0) == 0x40) {
		d->rex = byte & 15;
		byte = next_byte(d);
	}
	if (byte == 0x0f) {
		d->map = MAP_0F;
		byte = next_byte(d);
		if (byte == 0x38 || byte == 0x3a) {
			d->map = byte == 0x38 ? MAP_38 : MAP_3A;
			byte = next_byte(d);
		}
	}
	d->op = byte;
	return true;
}

static void read_modrm(struct decoder *d)
{
	uint8_t modrm = next_byte(d), sib;

	d->mod = modrm >> 6;
	d->reg = (uint8_t)((modrm >> 3 & 7) | (d->rex & REX_R ? 8 : 0));
	d->rm = (uint8_t)((modrm & 7) | (d->rex & REX_B ? 8 : 0));
	d->memory = d->mod != 3;
	d->base = d->rm;
	if (!d->memory)
		return;
	if ((modrm & 7) == 4) {
		sib = next_byte(d);
		d->indexed = ((sib >> 3 & 7) | (d->rex & REX_X ? 8 : 0)) != SP;
		d->base = (uint8_t)((sib & 7) | (d->rex & REX_B ? 8 : 0));
		if ((sib & 7) == 5 && d->mod == 0) {
			d->indexed = true; /* without a base register */
			d->displacement = read_number(d, 4);
		}
	} else if ((modrm & 7) == 5 && d->mod == 0) {
		d->relative = true;
		d->displacement = read_number(d, 4);
	}
	if (d->mod != 0)
		d->displacement = read_number(d, d->mod == 1 ? 1 : 4);
}

static void read_immediate(struct decoder *d)
{
	bool one = d->map == MAP_ONE;

	if (one && d->op >= 0xa0 && d->op <= 0xa3)
		read_number(d, d->narrow ? 4 : 8);
	else if (one && (d->op & 0xf8) == 0xb8)
		read_number(d, d->rex & REX_W ? 8 : d->small ? 2 : 4);
	else if (one && (d->op == 0xf6 || d->op == 0xf7) && (d->reg & 7) <= 1)
		read_number(d, d->op == 0xf6 ? 1 : d->small ? 2 : 4);
	else if (d->flags & I1)
		d->immediate = read_number(d, 1);
	else if (d->flags & I2)
		d->immediate = read_number(d, 2);
	else if (d->flags & I4)
		d->immediate = read_number(d, d->small ? 2 : 4);
}

static void set_effect(struct x86_insn *insn, enum x86_effect effect, int64_t value)
{
	insn->effect = effect;
	insn->value = value;
}

/* Sets `effect` and its target, which is encoded relative to the end of the instruction. */
static bool read_target(struct decoder *d, struct x86_insn *insn, enum x86_effect effect,
			size_t bytes)
{
	insn->effect = effect;
	insn->target = read_number(d, bytes);
	insn->has_target = true;
	return true;
}

/* Reads branches, jumps, calls, returns and traps. */
static bool read_flow(struct decoder *d, struct x86_insn *insn)
{
	uint8_t op = d->op;

	if (d->vex)
		return false;
	if (d->map == MAP_0F && (op & 0xf0) == 0x80)
		return read_target(d, insn, X86_BRANCH, 4);
	if (d->map == MAP_0F && op == 0x0b) {
		insn->effect = X86_TRAP;
		return true;
	}
	if (d->map != MAP_ONE)
		return false;
	if ((op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3))
		return read_target(d, insn, X86_BRANCH, 1);
	if (op == 0xe8)
		return read_target(d, insn, X86_CALL, 4);
	if (op == 0xe9 || op == 0xeb)
		return read_target(d, insn, X86_JUMP, op == 0xe9 ? 4 : 1);
	if (op == 0xf4 || op == 0xcc)
		insn->effect = X86_TRAP;
	else if (op == 0xc3 || op == 0xc2)
		insn->effect = X86_RETURN;
	else
		return false;
	if (op == 0xc2)
		read_number(d, 2);
	return true;
}

/* Reads instructions without modrm that change sp or name their register in the opcode. */
static bool read_short(const struct decoder *d, struct x86_insn *insn)
{
	uint8_t reg = (uint8_t)((d->op & 7) | (d->rex & REX_B ? 8 : 0));

	if (d->map == MAP_0F && (d->op & 0xf8) == 0xc8 && !d->vex) {
		if (reg == SP || reg == FP)
			insn->effect = reg == SP ? X86_SP_LOST : X86_FP_LOST;
		return true;
	}
	if (d->map != MAP_ONE)
		return false;
	switch (d->op & 0xf8) {
	case 0x50:
		set_effect(insn, reg == FP ? X86_FP_PUSH : X86_SP_ADD, -8);
		return true;
	case 0x58:
		set_effect(insn, reg == FP ? X86_FP_POP : reg == SP ? X86_SP_LOST : X86_SP_ADD, 8);
		return true;
	case 0x90:
	case 0xb8:
		if (d->op != 0x90 && (reg == SP || reg == FP))
			insn->effect = reg == SP ? X86_SP_LOST : X86_FP_LOST;
		if (d->op != 0x9c && d->op != 0x9d)
			return true;
		break;
	default:
		break;
	}
	if (d->op == 0x68 || d->op == 0x6a || d->op == 0x9c)
		set_effect(insn, X86_SP_ADD, -8);
	else if (d->op == 0x9d)
		set_effect(insn, X86_SP_ADD, 8);
	else if (d->op == 0xc9)
		insn->effect = X86_LEAVE;
	else
		return false;
	return true;
}

/* Returns whether the memory operand is `base` + displacement. */
static bool at_base(const struct decoder *d, uint8_t base)
{
	return d->memory && !d->indexed && !d->relative && d->base == base;
}

static void read_lea(const struct decoder *d, struct x86_insn *insn)
{
	if (d->relative) {
		insn->has_target = true;
		insn->target = d->displacement;
	}
	if (d->reg == SP)
		set_effect(insn,
			   at_base(d, SP)   ? X86_SP_ADD
			   : at_base(d, FP) ? X86_SP_FROM_FP
					    : X86_SP_LOST,
			   d->displacement);
	else if (d->reg == FP)
		set_effect(insn, at_base(d, SP) ? X86_FP_FROM_SP : X86_FP_LOST, d->displacement);
}

/* Reads a mov with sp or fp as an operand. False: another mov, which read_written handles. */
static bool read_mov(const struct decoder *d, struct x86_insn *insn)
{
	uint8_t to = d->op == 0x89 ? d->rm : d->reg, from = d->op == 0x89 ? d->reg : d->rm;

	if (!(d->rex & REX_W))
		return false;
	if (d->memory) {
		if (d->reg != FP || !at_base(d, SP))
			return false;
		set_effect(insn, d->op == 0x89 ? X86_FP_STORE : X86_FP_LOAD, d->displacement);
		return true;
	}
	if (to == SP && from == FP)
		insn->effect = X86_SP_FROM_FP;
	else if (to == FP && from == SP)
		insn->effect = X86_FP_FROM_SP;
	else
		return false;
	return true;
}

/*
 * Reads add, sub and cmp with an immediate; call, jmp and push of opcode 0xff; and the operations
 * of 0xf7 without an effect on sp and fp. False: read_written handles the instruction.
 */
static bool read_group(const struct decoder *d, struct x86_insn *insn)
{
	uint8_t which = d->reg & 7;

	if (d->op == 0xff && which >= 2) {
		static const enum x86_effect effects[] = { X86_CALL, X86_TRAP,	 X86_JUMP_UNKNOWN,
							   X86_TRAP, X86_SP_ADD, X86_TRAP };

		set_effect(insn, effects[which - 2], -8);
		return true;
	}
	if (d->op == 0xf7)
		return which != 2 && which != 3;
	if (d->op != 0x81 && d->op != 0x83)
		return false;
	if (which == 7)
		return true;
	if (d->memory || d->rm != SP || !(d->rex & REX_W) || (which != 0 && which != 5))
		return false;
	set_effect(insn, X86_SP_ADD, which == 0 ? d->immediate : -d->immediate);
	return true;
}

/* Reads whether any other instruction writes sp or fp. */
static void read_written(const struct decoder *d, struct x86_insn *insn)
{
	/* blsr and its relatives, and mulx, write the register of VEX.vvvv. */
	bool general = d->map == MAP_38 && (d->op == 0xf3 || d->op == 0xf6);
	bool sp = false, fp = false;

	if (d->flags & WR) {
		sp |= d->reg == SP;
		fp |= d->reg == FP;
	}
	if ((d->flags & WM) && !d->memory) {
		sp |= d->rm == SP;
		fp |= d->rm == FP;
	}
	if (d->vex && general) {
		sp |= d->vector == SP;
		fp |= d->vector == FP;
	}
	if (sp || fp)
		insn->effect = sp ? X86_SP_LOST : X86_FP_LOST;
}

static void read_effect(const struct decoder *d, struct x86_insn *insn)
{
	if (d->map == MAP_ONE && d->op == 0x8d) {
		read_lea(d, insn);
		return;
	}
	if (d->map == MAP_ONE && (d->op == 0x89 || d->op == 0x8b) && read_mov(d, insn))
		return;
	if (d->map == MAP_ONE && (d->flags & M) && read_group(d, insn))
		return;
	if (d->map == MAP_ONE && d->op == 0x8f) {
		set_effect(insn, d->memory ? X86_SP_ADD : X86_SP_LOST, 8);
		return;
	}
	read_written(d, insn);
}

/*
 * Returns whether compilers and linkers use the instruction as padding: nop of any length, and
 * int3.
 */
static bool is_padding(const struct decoder *d)
{
	if (d->vex)
		return false;
	return d->map == MAP_ONE ? (d->op == 0x90 && !d->rex) || d->op == 0xcc
				 : d->map == MAP_0F && d->op == 0x1f;
}

bool x86_insn_read(const uint8_t *code, size_t left, struct x86_insn *ret_insn)
{
	struct decoder d = { .at = code,
			     .end = code + (left < X86_INSN_MAX ? left : X86_INSN_MAX) };
	struct x86_insn insn = { 0 };

	if (!read_opcode(&d) || d.cut)
		return false;
	if (!read_flow(&d, &insn)) {
		d.flags = flags_of(&d);
		if (d.flags & BAD)
			return false;
		if (d.flags & M)
			read_modrm(&d);
		read_immediate(&d);
		if ((d.flags & M) || !read_short(&d, &insn))
			read_effect(&d, &insn);
	}
	insn.bytes = (uint8_t)(d.at - code);
	insn.padding = is_padding(&d);
	if (insn.has_target)
		insn.target += insn.bytes;
	*ret_insn = insn;
	return !d.cut;
}
