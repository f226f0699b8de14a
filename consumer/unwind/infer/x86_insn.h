/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * x86_insn.h: reads one instruction of x86-64 as far as the stack is concerned: how long it is,
 * where it leads, and what it does to sp and fp. Source: Intel SDM volume 2, chapter 2 and the
 * opcode maps of appendix A.
 */
#ifndef TROCAR_CONSUMER_X86_INSN_H
#define TROCAR_CONSUMER_X86_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_INSN_MAX 15 /* bytes */

enum x86_effect {
	X86_NONE,	  /* on neither */
	X86_SP_ADD,	  /* sp += value */
	X86_SP_FROM_FP,	  /* sp = fp + value */
	X86_SP_LOST,	  /* sp is something else */
	X86_FP_FROM_SP,	  /* fp = sp + value */
	X86_FP_PUSH,	  /* sp -= 8, and fp is saved there */
	X86_FP_POP,	  /* fp = what is saved at sp, sp += 8 */
	X86_FP_STORE,	  /* fp is saved at sp + value */
	X86_FP_LOAD,	  /* fp = what is saved at sp + value */
	X86_FP_LOST,	  /* fp is something else */
	X86_LEAVE,	  /* sp = fp, then as X86_FP_POP */
	X86_CALL,	  /* sp is the same behind it */
	X86_BRANCH,	  /* to `target`, or on */
	X86_JUMP,	  /* to `target` */
	X86_JUMP_UNKNOWN, /* through a register or memory */
	X86_RETURN,
	X86_TRAP, /* nothing comes behind it */
};

struct x86_insn {
	uint8_t bytes;
	bool padding; /* what text is filled with */
	enum x86_effect effect;
	int64_t value;
	bool has_target; /* of a call, a branch or a jump; or the address that a lea of code takes
			  */
	int64_t target;	 /* relative to the instruction's first byte */
};

/*
 * Reads the instruction at `code`, of which `left` bytes are there. False: it is none, it is cut,
 * or one whose effect is not known.
 */
bool x86_insn_read(const uint8_t *code, size_t left, struct x86_insn *ret_insn);

#endif
