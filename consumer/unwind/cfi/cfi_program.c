/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/cfi/cfi_program.h"

#include <errno.h>

#include "shared/tools/macro.h"

void cfi_program_start(struct cfi_program *p, const struct cfi_section *section,
		       const struct cfi_cie *cie, const struct cfi_state *initial,
		       struct cfi_bytes code, uint64_t from)
{
	p->section = section;
	p->cie = cie;
	p->initial = initial;
	p->code = code;
	p->state = *initial;
	p->from = p->to = from;
	p->changed = true;
	p->depth = 0;
}

/* Returns the place of a register that the state follows, or NULL. */
static struct cfi_place *place_of(struct cfi_state *s, uint64_t reg)
{
	switch (reg) {
	case CFI_FP:
		return &s->fp;
	case CFI_SP:
		return &s->sp;
	case CFI_PC:
		return &s->pc;
	default:
		return NULL;
	}
}

static void set_place(struct cfi_program *p, uint64_t reg, struct cfi_place to)
{
	struct cfi_place *place = place_of(&p->state, reg);

	if (!place)
		return; /* the state does not follow the register */
	*place = to;
	p->changed = true;
}

static int64_t scale_offset(const struct cfi_program *p, uint64_t factor)
{
	return (int64_t)(factor * (uint64_t)p->cie->data_align);
}

/* Advances by at most 32 bits times CFI_CODE_ALIGN_MAX. Returns 1 when the address changes. */
static int advance_address(struct cfi_program *p, uint64_t delta)
{
	p->to = p->from + delta * p->cie->code_align;
	if (p->to < p->from)
		return -EBADMSG;
	return p->to != p->from;
}

static int set_offset(struct cfi_program *p, uint64_t reg, enum cfi_kind kind, uint64_t factor)
{
	set_place(p, reg, (struct cfi_place){ .kind = kind, .offset = scale_offset(p, factor) });
	return 0;
}

static int restore_place(struct cfi_program *p, uint64_t reg)
{
	struct cfi_state initial;
	struct cfi_place *to = place_of(&initial, reg);

	if (!to)
		return 0;
	initial = *p->initial;
	set_place(p, reg, *to);
	return 0;
}

/* Reads a block: its length, then that many bytes. */
static struct cfi_place read_expression(struct cfi_program *p, enum cfi_kind kind)
{
	uint64_t bytes = cfi_bytes_uleb(&p->code);
	const uint8_t *expression = cfi_bytes_skip(&p->code, bytes);

	return (struct cfi_place){ .kind = kind,
				   .expression_bytes = (uint32_t)bytes,
				   .expression = expression };
}

static int op_nop(struct cfi_program *p)
{
	return 0;
}

static int op_set_loc(struct cfi_program *p)
{
	uint64_t address = cfi_entry_address(p->section, p->code.at);

	p->to = cfi_bytes_pointer(&p->code, p->cie->encoding, address);
	return p->to < p->from ? -EBADMSG : p->to != p->from;
}

static int op_advance1(struct cfi_program *p)
{
	return advance_address(p, cfi_bytes_u8(&p->code));
}

static int op_advance2(struct cfi_program *p)
{
	return advance_address(p, cfi_bytes_word(&p->code, 2));
}

static int op_advance4(struct cfi_program *p)
{
	return advance_address(p, cfi_bytes_word(&p->code, 4));
}

static int op_offset(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	return set_offset(p, reg, CFI_OFFSET, cfi_bytes_uleb(&p->code));
}

static int op_offset_signed(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	return set_offset(p, reg, CFI_OFFSET, (uint64_t)cfi_bytes_sleb(&p->code));
}

/* Obsolete: the offset has the opposite sign (binutils, gas/dw2gencfi.c before 2003). */
static int op_offset_negative(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	return set_offset(p, reg, CFI_OFFSET, -cfi_bytes_uleb(&p->code));
}

static int op_value_offset(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	return set_offset(p, reg, CFI_VALUE_OFFSET, cfi_bytes_uleb(&p->code));
}

static int op_value_offset_signed(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	return set_offset(p, reg, CFI_VALUE_OFFSET, (uint64_t)cfi_bytes_sleb(&p->code));
}

static int op_restore(struct cfi_program *p)
{
	return restore_place(p, cfi_bytes_uleb(&p->code));
}

static int op_undefined(struct cfi_program *p)
{
	set_place(p, cfi_bytes_uleb(&p->code), (struct cfi_place){ .kind = CFI_UNDEFINED });
	return 0;
}

static int op_same(struct cfi_program *p)
{
	set_place(p, cfi_bytes_uleb(&p->code), (struct cfi_place){ .kind = CFI_SAME });
	return 0;
}

static int op_register(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code), in = cfi_bytes_uleb(&p->code);

	set_place(p, reg, (struct cfi_place){ .kind = CFI_REGISTER, .reg = in });
	return 0;
}

static int op_remember(struct cfi_program *p)
{
	if (p->depth == CFI_REMEMBER_MAX)
		return -E2BIG;
	p->remembered[p->depth++] = p->state;
	return 0;
}

static int op_restore_state(struct cfi_program *p)
{
	if (p->depth == 0)
		return -EBADMSG;
	p->state = p->remembered[--p->depth];
	p->changed = true;
	return 0;
}

static int set_cfa(struct cfi_program *p, uint64_t reg, int64_t offset)
{
	p->state.cfa = (struct cfi_place){ .kind = CFI_OFFSET, .offset = offset };
	p->state.cfa_register = reg;
	p->changed = true;
	return 0;
}

static int op_cfa(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	return set_cfa(p, reg, (int64_t)cfi_bytes_uleb(&p->code));
}

static int op_cfa_signed(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	return set_cfa(p, reg, scale_offset(p, (uint64_t)cfi_bytes_sleb(&p->code)));
}

/* Changes one half of the CFA, so needs a CFA of register and offset. */
static int op_cfa_register(struct cfi_program *p)
{
	if (p->state.cfa.kind != CFI_OFFSET)
		return -EBADMSG;
	return set_cfa(p, cfi_bytes_uleb(&p->code), p->state.cfa.offset);
}

static int op_cfa_offset(struct cfi_program *p)
{
	if (p->state.cfa.kind != CFI_OFFSET)
		return -EBADMSG;
	p->state.cfa.offset = (int64_t)cfi_bytes_uleb(&p->code);
	p->changed = true;
	return 0;
}

static int op_cfa_offset_signed(struct cfi_program *p)
{
	if (p->state.cfa.kind != CFI_OFFSET)
		return -EBADMSG;
	return set_cfa(p, p->state.cfa_register,
		       scale_offset(p, (uint64_t)cfi_bytes_sleb(&p->code)));
}

static int op_cfa_expression(struct cfi_program *p)
{
	p->state.cfa = read_expression(p, CFI_EXPRESSION);
	p->changed = true;
	return 0;
}

static int op_expression(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	set_place(p, reg, read_expression(p, CFI_EXPRESSION));
	return 0;
}

static int op_value_expression(struct cfi_program *p)
{
	uint64_t reg = cfi_bytes_uleb(&p->code);

	set_place(p, reg, read_expression(p, CFI_VALUE_EXPRESSION));
	return 0;
}

/* Ignores how many bytes of arguments are pushed, because the CFA includes them. */
static int op_args_size(struct cfi_program *p)
{
	cfi_bytes_uleb(&p->code);
	return 0;
}

static int (*const ops[])(struct cfi_program *p) = {
	[CFI_OP_NOP] = op_nop,
	[0x01] = op_set_loc,
	[CFI_OP_ADVANCE1] = op_advance1,
	[CFI_OP_ADVANCE2] = op_advance2,
	[CFI_OP_ADVANCE4] = op_advance4,
	[0x05] = op_offset,
	[0x06] = op_restore,
	[0x07] = op_undefined,
	[0x08] = op_same,
	[0x09] = op_register,
	[CFI_OP_REMEMBER] = op_remember,
	[CFI_OP_RESTORE_STATE] = op_restore_state,
	[CFI_OP_CFA] = op_cfa,
	[CFI_OP_CFA_REGISTER] = op_cfa_register,
	[CFI_OP_CFA_OFFSET] = op_cfa_offset,
	[0x0f] = op_cfa_expression,
	[0x10] = op_expression,
	[0x11] = op_offset_signed,
	[0x12] = op_cfa_signed,
	[0x13] = op_cfa_offset_signed,
	[0x14] = op_value_offset,
	[0x15] = op_value_offset_signed,
	[0x16] = op_value_expression,
	/* 0x2d: GNU_window_save on SPARC, negate_ra_state on arm64; nothing on x86-64 */
	[CFI_OP_ARGS_SIZE] = op_args_size,
	[0x2f] = op_offset_negative,
};

/*
 * Runs an instruction with operands that follow it. 0; 1: the address has advanced; -errno as
 * cfi_program_next.
 */
static int run_whole(struct cfi_program *p, uint8_t op)
{
	if (op >= ARRAY_SIZE(ops) || !ops[op])
		return -EBADMSG;
	return ops[op](p);
}

/* Selects the frequent instructions with one jump that a processor can predict. */
static inline int run_instruction(struct cfi_program *p, uint8_t op)
{
	uint8_t low = op & 0x3f;

	switch (op & 0xc0) {
	case CFI_OP_ADVANCE:
		return advance_address(p, low);
	case CFI_OP_OFFSET:
		return set_offset(p, low, CFI_OFFSET, cfi_bytes_uleb(&p->code));
	case CFI_OP_RESTORE:
		return restore_place(p, low);
	default:
		return op == CFI_OP_CFA_OFFSET ? op_cfa_offset(p) : run_whole(p, op);
	}
}

int cfi_program_next(struct cfi_program *p)
{
	const uint8_t *before = p->code.at;
	int r = 0;

	p->from = p->to;
	while (r == 0 && p->code.at != p->code.end)
		r = run_instruction(p, *p->code.at++);
	p->steps += (uint64_t)(p->code.at - before);
	return p->code.bad ? -EBADMSG : r;
}
