/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind_insn.h: decodes the parts of an x86-64 instruction that a walk needs: its length, and its
 * effect on sp and fp. shared/elf/x86_insn.h is the full decoder of the consumer. This decoder is
 * small enough for the verifier, and gives up in cases where the full one does not. A test compares
 * both. Source: Intel SDM volume 2, chapter 2.
 */
#ifndef TROCAR_BPF_UNWIND_UNWIND_INSN_H
#define TROCAR_BPF_UNWIND_UNWIND_INSN_H

#include <linux/types.h>

#include "bpf/unwind/unwind_stack.h"
#include "shared/elf/x86_opcodes.h"

/* A global BPF function: the verifier checks it once, whatever path leads to it. */
#ifdef UNWIND_HOST
#define UNWIND_GLOBAL UNWIND_APART
#define bpf_loop(times, step, context, flags)        \
	for (__u32 loop_i = 0, loop_times = (times); \
	     loop_i < loop_times && !step(loop_i, context); loop_i++)
#else
#define UNWIND_GLOBAL __weak __noinline
#endif

#define UNWIND_INSN_BYTES    64 /* bytes of code read at once; a power of two */
#define UNWIND_INSN_MAX	     15 /* maximum length of an instruction */
#define UNWIND_INSN_PREFIXES 8	/* maximum of prefixes read; compilers pad with up to 7 */

enum unwind_effect {
	UNWIND_INSN_NONE,	/* no effect on sp and fp */
	UNWIND_INSN_SP_ADD,	/* sp += value */
	UNWIND_INSN_SP_FROM_FP, /* sp = fp + value */
	UNWIND_INSN_FP_FROM_SP, /* fp = sp + value */
	UNWIND_INSN_FP_PUSH,	/* sp -= 8, and fp is saved there */
	UNWIND_INSN_FP_POP,	/* fp is loaded from sp, sp += 8 */
	UNWIND_INSN_FP_STORE,	/* fp is saved at sp + value */
	UNWIND_INSN_FP_LOAD,	/* fp is loaded from sp + value */
	UNWIND_INSN_FP_LOST,	/* fp becomes unknown */
	UNWIND_INSN_LEAVE,	/* sp = fp, then as FP_POP */
	UNWIND_INSN_CALL,	/* sp is the same after it */
	UNWIND_INSN_BRANCH,	/* to its end + value, or not taken */
	UNWIND_INSN_JUMP,	/* to its end + value */
	UNWIND_INSN_RETURN,	/* value: bytes of arguments that it pops */
	UNWIND_INSN_END,	/* the code after it is unknown */
};

/* Code, and the instruction at `offset` in it after decoding. */
struct unwind_insn {
	union {
		__u8 code[UNWIND_INSN_BYTES];
		__u64 words[UNWIND_INSN_BYTES / sizeof(__u64)];
	};
	__u32 offset; /* at most UNWIND_INSN_BYTES - UNWIND_INSN_MAX - 1 */
	__u32 bytes;  /* of the instruction */
	__s64 value;
	__u32 based; /* it accesses memory below fp, before it may change fp */
	/* Temporary values of the decoder: */
	__u32 rex, narrow, op, map, flags, modrm, at, end, imm;
};

enum unwind_map { UNWIND_MAP_ONE, UNWIND_MAP_0F, UNWIND_MAP_38, UNWIND_MAP_3A };

#define UNWIND_REX_W 8u
#define UNWIND_REX_R 4u
#define UNWIND_REX_X 2u
#define UNWIND_REX_B 1u
#define UNWIND_SP    4u
#define UNWIND_FP    5u
#define UNWIND_VEX   0x10u /* in addition to the REX bits: the encoding is VEX or EVEX */

#define UNWIND_INSN_INLINE static __attribute__((always_inline)) inline

/*
 * Returns `value` after a store and load: the verifier forgets its bounds. So the verifier merges
 * the paths that computed it.
 */
UNWIND_INSN_INLINE __u32 unwind_insn_keep(__u32 *place, __u32 value)
{
	*(volatile __u32 *)place = value;
	asm volatile("" ::: "memory");
	return *(volatile __u32 *)place;
}

UNWIND_INSN_INLINE __u32 unwind_insn_byte(const struct unwind_insn *i, __u32 at)
{
	return i->code[at & (UNWIND_INSN_BYTES - 1)];
}

/* Returns the signed number of one or four bytes at `at`. */
UNWIND_INSN_INLINE __s64 unwind_insn_number(const struct unwind_insn *i, __u32 at, __u32 bytes)
{
	if (bytes == 1)
		return (__s8)unwind_insn_byte(i, at);
	return (__s32)(unwind_insn_byte(i, at) | unwind_insn_byte(i, at + 1) << 8 |
		       unwind_insn_byte(i, at + 2) << 16 | unwind_insn_byte(i, at + 3) << 24);
}

/* Reads a REX, VEX or EVEX prefix and the opcode with its map, from `at` on. Returns their end. */
UNWIND_INSN_INLINE __u32 unwind_insn_opcode(struct unwind_insn *i, __u32 at)
{
	__u32 byte = unwind_insn_byte(i, at), vex = 0;

	i->map = UNWIND_MAP_ONE;
	i->rex = 0;
	if (byte == 0xc5) {
		vex = 2;
		i->map = UNWIND_MAP_0F;
		i->rex = unwind_insn_byte(i, at + 1) & 0x80 ? 0 : UNWIND_REX_R;
	} else if (byte == 0xc4 || byte == 0x62) {
		vex = byte == 0xc4 ? 3 : 4;
		i->map = unwind_insn_byte(i, at + 1) & 3;
		i->rex = unwind_insn_byte(i, at + 1) & 0x80 ? 0 : UNWIND_REX_R;
		i->rex |= unwind_insn_byte(i, at + 1) & 0x20 ? 0 : UNWIND_REX_B;
	} else if ((byte & 0xf0) == 0x40) {
		i->rex = byte & 15;
		byte = unwind_insn_byte(i, ++at);
	}
	if (vex) {
		i->rex |= UNWIND_VEX;
		at += vex;
		byte = unwind_insn_byte(i, at);
	} else if (byte == 0x0f) {
		i->map = UNWIND_MAP_0F;
		byte = unwind_insn_byte(i, ++at);
		if (byte == 0x38 || byte == 0x3a) {
			i->map = byte == 0x38 ? UNWIND_MAP_38 : UNWIND_MAP_3A;
			byte = unwind_insn_byte(i, ++at);
		}
	}
	i->op = byte;
	return at + 1;
}

UNWIND_INSN_INLINE __u32 unwind_insn_flags(const struct unwind_insn *i)
{
	__u32 op = i->op & 255;

	if (i->map == UNWIND_MAP_ONE) {
		if (op >= 0x40 || flags_one[op])
			return (op & 0xf8) == 0xb0 ? I1 : flags_one[op];
		if ((op & 7) >= 4)
			return (op & 7) == 4 ? I1 : I4;
		return M | (op >= 0x38 ? 0 : (op & 7) == 1 ? WM : (op & 7) == 3 ? WR : 0); /* cmp */
	}
	if (i->map == UNWIND_MAP_0F)
		return i->rex & UNWIND_VEX && (op & 0xf0) == 0x40 ? M : flags_0f[op];
	if (i->map == UNWIND_MAP_38)
		return (op & 0xf8) == 0xf0 ? M | WR | WM : M;
	return M | I1 | (op >= 0x14 && op <= 0x17 ? WM : 0) | (op == 0xf0 ? WR : 0);
}

/* Returns the length of modrm at `at` and of its operands. */
UNWIND_INSN_INLINE __u32 unwind_insn_operand(const struct unwind_insn *i, __u32 at)
{
	__u32 mod = i->modrm >> 6, rm = i->modrm & 7, bytes = 1, wide = mod == 2;

	if (mod == 3)
		return 1;
	if (rm == 4) {
		bytes = 2;
		rm = unwind_insn_byte(i, at + 1) & 7;
		wide |= mod == 0 && rm == 5;
	} else {
		wide |= mod == 0 && rm == 5;
	}
	return bytes + (wide ? 4 : mod == 1);
}

/* Returns the length of the immediate. */
UNWIND_INSN_INLINE __u32 unwind_insn_immediate(const struct unwind_insn *i)
{
	__u32 four = i->narrow & 1 ? 2 : 4, op = i->op;

	if (i->map == UNWIND_MAP_ONE) {
		if (op >= 0xa0 && op <= 0xa3)
			return i->narrow & 2 ? 4 : 8;
		if ((op & 0xf8) == 0xb8)
			return i->rex & UNWIND_REX_W ? 8 : four;
		if ((op == 0xf6 || op == 0xf7) && (i->modrm & 0x30) == 0)
			return op == 0xf6 ? 1 : four;
		if (op == 0xe8 || op == 0xe9)
			return 4;
		if ((op & 0xf0) == 0x70 || op == 0xeb || (op >= 0xe0 && op <= 0xe3))
			return 1;
	} else if (i->map == UNWIND_MAP_0F && (op & 0xf0) == 0x80 && !(i->rex & UNWIND_VEX)) {
		return 4;
	}
	return i->flags & I1 ? 1 : i->flags & I2 ? 2 : i->flags & I4 ? four : 0;
}

/*
 * Returns 1 if the memory operand is fp + a negative displacement, and the instruction accesses it.
 */
UNWIND_INSN_INLINE __u32 unwind_insn_is_based(const struct unwind_insn *i, __u32 at)
{
	__u32 mod = i->modrm >> 6;

	if ((mod != 1 && mod != 2) || (i->modrm & 7) != UNWIND_FP || i->rex & UNWIND_REX_B)
		return 0;
	if (i->map == UNWIND_MAP_ONE ? i->op == 0x8d
				     : i->map == UNWIND_MAP_0F && i->op >= 0x18 && i->op <= 0x1f)
		return 0; /* lea, and nop */
	return unwind_insn_number(i, at + 1, mod == 1 ? 1 : 4) < 0;
}

/* The operands of an instruction with modrm. */
struct unwind_operands {
	__u32 mod, reg, rm;
	__u32 by_sp; /* memory at sp + a displacement, without an index */
};

UNWIND_INSN_INLINE struct unwind_operands unwind_insn_operands(const struct unwind_insn *i,
							       __u32 at)
{
	struct unwind_operands o = { .mod = i->modrm >> 6 };

	o.reg = (i->modrm >> 3 & 7) | (i->rex & UNWIND_REX_R) << 1;
	o.rm = (i->modrm & 7) | (i->rex & UNWIND_REX_B) << 3;
	o.by_sp = o.mod != 3 && o.rm == UNWIND_SP && unwind_insn_byte(i, at + 1) == 0x24 &&
		  !(i->rex & UNWIND_REX_X);
	return o;
}

/*
 * Returns the effect of a 64-bit mov or lea. UNWIND_INSN_NONE: use the effect of any other
 * instruction.
 */
UNWIND_INSN_INLINE __u32 unwind_insn_move_effect(struct unwind_insn *i,
						 const struct unwind_operands *o)
{
	__u32 op = i->op, to = op == 0x89 ? o->rm : o->reg, from = op == 0x89 ? o->reg : o->rm;

	if (op == 0x8d && o->reg == UNWIND_SP) {
		if (o->by_sp)
			return UNWIND_INSN_SP_ADD;
		return o->mod != 0 && o->rm == UNWIND_FP ? UNWIND_INSN_SP_FROM_FP : UNWIND_INSN_END;
	}
	if (op == 0x8d)
		return o->reg == UNWIND_FP && o->by_sp ? UNWIND_INSN_FP_FROM_SP : UNWIND_INSN_NONE;
	if (o->mod != 3 && (o->reg != UNWIND_FP || !o->by_sp))
		return UNWIND_INSN_NONE;
	if (o->mod != 3)
		return op == 0x89 ? UNWIND_INSN_FP_STORE : UNWIND_INSN_FP_LOAD;
	if (to == UNWIND_SP && from == UNWIND_FP)
		return UNWIND_INSN_SP_FROM_FP;
	return to == UNWIND_FP && from == UNWIND_SP ? UNWIND_INSN_FP_FROM_SP : UNWIND_INSN_NONE;
}

/* Returns the effect of the instruction's write on sp and fp, if no other rule applies. */
UNWIND_INSN_INLINE __u32 unwind_insn_write_effect(const struct unwind_insn *i,
						  const struct unwind_operands *o)
{
	__u32 wr = i->flags & WR ? o->reg : 0, wm = i->flags & WM && o->mod == 3 ? o->rm : 0;

	if (i->rex & UNWIND_VEX && i->map == UNWIND_MAP_38 && (i->op == 0xf3 || i->op == 0xf6))
		return UNWIND_INSN_END; /* blsr and similar, mulx: VEX's third operand */
	if (wr == UNWIND_SP || wm == UNWIND_SP)
		return UNWIND_INSN_END;
	return wr == UNWIND_FP || wm == UNWIND_FP ? UNWIND_INSN_FP_LOST : UNWIND_INSN_NONE;
}

/* Returns the effect of an instruction with modrm. */
UNWIND_INSN_INLINE __u32 unwind_insn_modrm_effect(struct unwind_insn *i, __u32 at, __u32 imm)
{
	__u32 which = i->modrm >> 3 & 7, op = i->map == UNWIND_MAP_ONE ? i->op : 0, effect;
	const struct unwind_operands o = unwind_insn_operands(i, at);
	__u32 wide = i->rex & UNWIND_REX_W;

	if (o.mod == 1 || o.mod == 2)
		i->value =
			unwind_insn_number(i, at + 1 + ((i->modrm & 7) == 4), o.mod == 1 ? 1 : 4);
	if (wide && (op == 0x8d || op == 0x89 || op == 0x8b)) {
		effect = unwind_insn_move_effect(i, &o);
		if (effect != UNWIND_INSN_NONE)
			return effect;
	}
	if (op == 0xff && which >= 2) {
		i->value = -8;
		return which == 2   ? UNWIND_INSN_CALL
		       : which == 6 ? UNWIND_INSN_SP_ADD
				    : UNWIND_INSN_END;
	}
	if (op == 0x8f) {
		i->value = 8;
		return o.mod == 3 ? UNWIND_INSN_END : UNWIND_INSN_SP_ADD;
	}
	if ((op == 0x81 || op == 0x83) && which == 7)
		return UNWIND_INSN_NONE;
	if ((op == 0x81 || op == 0x83) && o.mod == 3 && o.rm == UNWIND_SP && wide &&
	    (which == 0 || which == 5)) {
		i->value = unwind_insn_number(i, at + 1, imm);
		i->value = which == 0 ? i->value : -i->value;
		return UNWIND_INSN_SP_ADD;
	}
	if (op == 0xf7 && which != 2 && which != 3)
		return UNWIND_INSN_NONE;
	return unwind_insn_write_effect(i, &o);
}

/* Returns the effect of an instruction without modrm, with its immediate at `at`. */
UNWIND_INSN_INLINE __u32 unwind_insn_plain_effect(struct unwind_insn *i, __u32 at)
{
	__u32 op = i->op, reg = (op & 7) | (i->rex & UNWIND_REX_B) << 3;

	i->value = 8;
	if (i->map != UNWIND_MAP_ONE) {
		if (i->map != UNWIND_MAP_0F || i->rex & UNWIND_VEX)
			return UNWIND_INSN_NONE;
		if ((op & 0xf0) == 0x80) {
			i->value = unwind_insn_number(i, at, 4);
			return UNWIND_INSN_BRANCH;
		}
		if (op == 0x0b || ((op & 0xf8) == 0xc8 && reg == UNWIND_SP))
			return UNWIND_INSN_END;
		return (op & 0xf8) == 0xc8 && reg == UNWIND_FP ? UNWIND_INSN_FP_LOST
							       : UNWIND_INSN_NONE;
	}
	if ((op & 0xf8) == 0x58)
		return reg == UNWIND_FP	  ? UNWIND_INSN_FP_POP
		       : reg == UNWIND_SP ? UNWIND_INSN_END
					  : UNWIND_INSN_SP_ADD;
	if (op == 0x9d)
		return UNWIND_INSN_SP_ADD;
	i->value = -8;
	if ((op & 0xf8) == 0x50)
		return reg == UNWIND_FP ? UNWIND_INSN_FP_PUSH : UNWIND_INSN_SP_ADD;
	if (op == 0x68 || op == 0x6a || op == 0x9c)
		return UNWIND_INSN_SP_ADD;
	i->value = 0;
	if (op == 0xc9)
		return UNWIND_INSN_LEAVE;
	if (op == 0xe8)
		return UNWIND_INSN_CALL;
	if ((op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3)) {
		i->value = unwind_insn_number(i, at, 1);
		return UNWIND_INSN_BRANCH;
	}
	if (op == 0xe9 || op == 0xeb) {
		i->value = unwind_insn_number(i, at, op == 0xe9 ? 4 : 1);
		return UNWIND_INSN_JUMP;
	}
	if (op == 0xc2 || op == 0xc3) {
		i->value =
			op == 0xc3 ? 0 : unwind_insn_byte(i, at) | unwind_insn_byte(i, at + 1) << 8;
		return UNWIND_INSN_RETURN;
	}
	if (op == 0xf4 || op == 0xcc)
		return UNWIND_INSN_END;
	if ((op & 0xf8) == 0xb8 || ((op & 0xf8) == 0x90 && op != 0x90 && op < 0x98))
		return reg == UNWIND_SP	  ? UNWIND_INSN_END
		       : reg == UNWIND_FP ? UNWIND_INSN_FP_LOST
					  : UNWIND_INSN_NONE;
	return UNWIND_INSN_NONE;
}

/*
 * Decodes the instruction at i->offset of i->code, and sets `bytes` and `value`. Returns its
 * effect; UNWIND_INSN_END also for an invalid instruction.
 */
UNWIND_GLOBAL int unwind_insn_read(struct unwind_insn *i)
{
	__u32 at, end, imm, byte;

	if (!i)
		return UNWIND_INSN_END;
	at = i->offset;
	i->narrow = 0;
	i->based = 0;
	for (int n = 0; n < UNWIND_INSN_PREFIXES; n++) {
		byte = unwind_insn_byte(i, at);
		if (byte != 0x66 && byte != 0xf2 && byte != 0xf3 && byte != 0xf0 && byte != 0x67 &&
		    (byte & 0xe7) != 0x26 && byte != 0x64 && byte != 0x65)
			break;
		i->narrow |= byte == 0x66 ? 1 : byte == 0x67 ? 2 : 0;
		at = unwind_insn_keep(&i->at, at + 1);
	}
	at = unwind_insn_keep(&i->at, unwind_insn_opcode(i, at));
	unwind_insn_keep(&i->flags, unwind_insn_flags(i));
	if (i->flags & BAD || (i->rex & UNWIND_VEX && i->map == UNWIND_MAP_ONE))
		return UNWIND_INSN_END;
	i->modrm = i->flags & M ? unwind_insn_byte(i, at) : 0xff;
	end = unwind_insn_keep(&i->end, at + (i->flags & M ? unwind_insn_operand(i, at) : 0));
	imm = unwind_insn_keep(&i->imm, unwind_insn_immediate(i));
	i->bytes = end + imm - i->offset;
	i->value = 0;
	if (!(i->flags & M))
		return (int)unwind_insn_plain_effect(i, at);
	unwind_insn_keep(&i->based, unwind_insn_is_based(i, at));
	return (int)unwind_insn_modrm_effect(i, at, imm);
}

#endif
