/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cfi_program.h: runs the instructions of one entry, from address to address. It follows only the
 * registers that lead to the caller's frame. Sources: DWARF 5 sections 6.4.2 and 7.24; System V ABI
 * AMD64 section 3.6.2 for the numbers of the registers.
 */
#ifndef TROCAR_CONSUMER_UNWIND_CFI_CFI_PROGRAM_H
#define TROCAR_CONSUMER_UNWIND_CFI_CFI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/unwind/cfi/cfi_entry.h"

#define CFI_REMEMBER_MAX 8 /* states remembered at once; compilers need one */

/* Instructions. The first three have their operand in the low six bits. */
#define CFI_OP_ADVANCE	     0x40
#define CFI_OP_OFFSET	     0x80
#define CFI_OP_RESTORE	     0xc0
#define CFI_OP_NOP	     0x00
#define CFI_OP_ADVANCE1	     0x02
#define CFI_OP_ADVANCE2	     0x03
#define CFI_OP_ADVANCE4	     0x04
#define CFI_OP_REMEMBER	     0x0a
#define CFI_OP_RESTORE_STATE 0x0b
#define CFI_OP_CFA	     0x0c
#define CFI_OP_CFA_REGISTER  0x0d
#define CFI_OP_CFA_OFFSET    0x0e
#define CFI_OP_ARGS_SIZE     0x2e

/* DWARF's numbers of x86-64's registers. */
#define CFI_LINK 5 /* rdi: the only register that a rule may take the return address from */
#define CFI_FP	 6
#define CFI_SP	 7
#define CFI_PC	 16

enum cfi_kind {
	CFI_UNSET = 0, /* not mentioned */
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_OFFSET,	      /* saved at CFA + offset; for the CFA: register + offset */
	CFI_VALUE_OFFSET,     /* is CFA + offset */
	CFI_REGISTER,	      /* in another register */
	CFI_EXPRESSION,	      /* saved at the expression's address; for the CFA: its value */
	CFI_VALUE_EXPRESSION, /* is the expression's value */
};

struct cfi_place {
	enum cfi_kind kind;
	uint32_t expression_bytes;
	union {
		int64_t offset;
		uint64_t reg;
		const uint8_t *expression; /* in the section */
	};
};

struct cfi_state {
	struct cfi_place cfa; /* UNSET, OFFSET or EXPRESSION */
	uint64_t cfa_register;
	struct cfi_place pc, fp, sp;
};

/* A run in progress. cfi_program_start prepares it. */
struct cfi_program {
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	const struct cfi_state *initial; /* after the CIE's instructions; restore returns to it */
	struct cfi_bytes code;
	struct cfi_state state;
	uint64_t from, to; /* the address range in which the state is valid */
	uint64_t steps;	   /* bytes of instructions run, over all runs */
	bool changed;	   /* the state has changed since the caller set this to false */
	unsigned int depth;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
};

/* Prepares a run from address `from`, in state `initial`. Does not reset p->steps. */
void cfi_program_start(struct cfi_program *p, const struct cfi_section *section,
		       const struct cfi_cie *cie, const struct cfi_state *initial,
		       struct cfi_bytes code, uint64_t from);

/*
 * Runs until the address advances. Returns 1: the state is valid from p->from to before p->to; call
 * again. Returns 0: the program has ended; the state is valid from p->from on. Returns -EBADMSG
 * (malformed, or an unknown instruction) or -E2BIG (more than CFI_REMEMBER_MAX remembered states):
 * there is no state from p->from on.
 */
int cfi_program_next(struct cfi_program *p);

#endif
