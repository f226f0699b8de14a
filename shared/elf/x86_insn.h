/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_insn.h: decodes the stack effects of one x86-64 instruction: its length, its target, and its
 * effect on sp and fp. Source: Intel SDM volume 2, chapter 2 and the opcode maps of appendix A.
 */
#ifndef TROCAR_SHARED_ELF_X86_INSN_H
#define TROCAR_SHARED_ELF_X86_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_INSN_MAX 15 /* limit of an instruction */

enum x86_effect {
	X86_NONE,	  /* no effect on sp and fp */
	X86_SP_ADD,	  /* sp += value */
	X86_SP_FROM_FP,	  /* sp = fp + value */
	X86_SP_LOST,	  /* sp becomes unknown */
	X86_FP_FROM_SP,	  /* fp = sp + value */
	X86_FP_PUSH,	  /* sp -= 8, and fp is saved there */
	X86_FP_POP,	  /* fp is loaded from sp, sp += 8 */
	X86_FP_STORE,	  /* fp is saved at sp + value */
	X86_FP_LOAD,	  /* fp is loaded from sp + value */
	X86_FP_LOST,	  /* fp becomes unknown */
	X86_LEAVE,	  /* sp = fp, then as X86_FP_POP */
	X86_CALL,	  /* sp is unchanged after the call returns */
	X86_BRANCH,	  /* to `target`, or to the next instruction */
	X86_JUMP,	  /* to `target` */
	X86_JUMP_UNKNOWN, /* to an address in a register or memory */
	X86_RETURN,
	X86_TRAP, /* no instruction follows it */
};

struct x86_insn {
	uint8_t bytes;
	bool padding; /* padding between functions */
	enum x86_effect effect;
	int64_t value;
	bool has_target; /* of a call, branch or jump; or the code address taken by a lea */
	int64_t target;	 /* relative to the instruction's first byte */
};

/*
 * Decodes the instruction at `code`, of which `left` bytes can be read. False: invalid, cut, or
 * with an unknown effect.
 */
bool x86_insn_read(const uint8_t *code, size_t left, struct x86_insn *ret_insn);

#endif
