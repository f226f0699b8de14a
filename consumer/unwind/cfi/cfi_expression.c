/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/cfi/cfi_expression.h"

#include "consumer/unwind/cfi/cfi_bytes.h"
#include "consumer/unwind/cfi/cfi_program.h"

#define STACK_MAX 8

enum op {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_NOP = 0x96,
};

struct stack {
	struct cfi_value values[STACK_MAX];
	size_t count;
};

static bool push_value(struct stack *s, struct cfi_value value)
{
	if (s->count == STACK_MAX)
		return false;
	s->values[s->count++] = value;
	return true;
}

static bool push_number(struct stack *s, uint64_t number)
{
	return push_value(s, (struct cfi_value){ .base = CFI_BASE_NUMBER, .a = (int64_t)number });
}

static bool push_register(struct stack *s, uint64_t reg, int64_t offset)
{
	struct cfi_value value = { .a = offset };

	if (reg != CFI_FP && reg != CFI_SP)
		return false;
	value.base = reg == CFI_FP ? CFI_BASE_FP : CFI_BASE_SP;
	return push_value(s, value);
}

/* Adds a number to the top, modulo 2^64 as the machine does. */
static bool add_number(struct stack *s, uint64_t number)
{
	struct cfi_value *top = &s->values[s->count - 1];
	int64_t *to = top->memory ? &top->b : &top->a;

	*to = (int64_t)((uint64_t)*to + number);
	return true;
}

/* Adds or subtracts the top two, one of which must be a number; to subtract, the upper one. */
static bool add_top(struct stack *s, bool minus)
{
	struct cfi_value upper, lower;

	if (s->count < 2)
		return false;
	upper = s->values[--s->count];
	if (upper.base == CFI_BASE_NUMBER)
		return add_number(s, minus ? -(uint64_t)upper.a : (uint64_t)upper.a);
	lower = s->values[s->count - 1];
	if (minus || lower.base != CFI_BASE_NUMBER)
		return false;
	s->values[s->count - 1] = upper;
	return add_number(s, (uint64_t)lower.a);
}

static bool load_top(struct stack *s)
{
	struct cfi_value *top;

	if (s->count == 0)
		return false;
	top = &s->values[s->count - 1];
	if (top->memory || top->base == CFI_BASE_NUMBER)
		return false;
	top->memory = true;
	return true;
}

static bool run_constant(struct stack *s, uint8_t op, struct cfi_bytes *b)
{
	switch (op) {
	case OP_CONST1U:
		return push_number(s, cfi_bytes_u8(b));
	case OP_CONST1S:
		return push_number(s, (uint64_t)cfi_bytes_signed(b, 1));
	case OP_CONST2U:
		return push_number(s, cfi_bytes_word(b, 2));
	case OP_CONST2S:
		return push_number(s, (uint64_t)cfi_bytes_signed(b, 2));
	case OP_CONST4U:
		return push_number(s, cfi_bytes_word(b, 4));
	case OP_CONST4S:
		return push_number(s, (uint64_t)cfi_bytes_signed(b, 4));
	case OP_CONSTU:
		return push_number(s, cfi_bytes_uleb(b));
	case OP_CONSTS:
		return push_number(s, (uint64_t)cfi_bytes_sleb(b));
	default:
		return false;
	}
}

static bool run_operation(struct stack *s, struct cfi_bytes *b)
{
	uint8_t op = cfi_bytes_u8(b);
	uint64_t reg;

	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push_number(s, op - OP_LIT0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return push_register(s, op - OP_BREG0, cfi_bytes_sleb(b));
	switch (op) {
	case OP_NOP:
		return true;
	case OP_BREGX:
		reg = cfi_bytes_uleb(b);
		return push_register(s, reg, cfi_bytes_sleb(b));
	case OP_DEREF:
		return load_top(s);
	case OP_PLUS:
	case OP_MINUS:
		return add_top(s, op == OP_MINUS);
	case OP_PLUS_UCONST:
		return s->count > 0 && add_number(s, cfi_bytes_uleb(b));
	default:
		return run_constant(s, op, b);
	}
}

bool cfi_expression_value(const uint8_t *expression, size_t bytes, bool with_cfa,
			  struct cfi_value *ret_value)
{
	struct cfi_bytes b = { .at = expression, .end = expression + bytes };
	struct stack s = { 0 };

	if (bytes > CFI_EXPRESSION_MAX)
		return false;
	if (with_cfa)
		push_value(&s, (struct cfi_value){ .base = CFI_BASE_CFA });
	while (b.at < b.end)
		if (!run_operation(&s, &b) || b.bad)
			return false;
	if (s.count == 0)
		return false;
	*ret_value = s.values[s.count - 1];
	return true;
}

bool cfi_expression_plt(const uint8_t *expression, size_t bytes, int64_t *ret_base,
			uint8_t *ret_limit)
{
	static const uint8_t head[] = { OP_BREG0 + CFI_PC, 0, OP_LIT0 + 15, OP_AND };
	static const uint8_t tail[] = { OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS };
	struct cfi_bytes b = { .at = expression, .end = expression + bytes };
	const uint8_t *part;
	int64_t base;
	uint8_t limit;

	if (cfi_bytes_u8(&b) != OP_BREG0 + CFI_SP)
		return false;
	base = cfi_bytes_sleb(&b);
	part = cfi_bytes_skip(&b, sizeof(head));
	if (!part || memcmp(part, head, sizeof(head)) != 0)
		return false;
	limit = cfi_bytes_u8(&b);
	part = cfi_bytes_skip(&b, sizeof(tail));
	if (!part || memcmp(part, tail, sizeof(tail)) != 0 || b.at != b.end)
		return false;
	if (limit < OP_LIT0 || limit > OP_LIT0 + 16)
		return false;
	*ret_base = base;
	*ret_limit = limit - OP_LIT0;
	return true;
}
