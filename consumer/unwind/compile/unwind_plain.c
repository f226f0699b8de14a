/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/compile/unwind_plain.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "consumer/unwind/cfi/cfi_rule.h"

#define CODE_MAX  4096 /* bytes of instructions; this many rows are reserved */
#define ALIGN_MAX 128  /* of data, either sign: a factor of 7 bits then fits 16 bits */

static_assert(ALIGN_MAX * 127 <= INT16_MAX, "an offset of fp fits a rule");

bool unwind_plain_of(const struct cfi_cie *cie, const struct cfi_state *initial,
		     struct unwind_plain *ret_plain)
{
	if (cie->signal || cie->code_align != 1 || cie->data_align > ALIGN_MAX ||
	    cie->data_align < -ALIGN_MAX || !cfi_rule_plain(initial, &ret_plain->initial))
		return false;
	ret_plain->data_align = (int32_t)cie->data_align;
	return true;
}

/*
 * Returns the rule as one word, so that the state is one register. Members would be written one by
 * one and read together, and the processor would have to wait.
 */
static inline uint64_t word_of(struct unwind_rule rule)
{
	uint64_t word;

	memcpy(&word, &rule, sizeof(word));
	return word;
}

static inline struct unwind_rule rule_of(uint64_t word)
{
	struct unwind_rule rule;

	memcpy(&rule, &word, sizeof(rule));
	return rule;
}

#define OFFSET_BITS (word_of((struct unwind_rule){ .cfa_offset = -1 }))
#define CFA_BITS    (word_of((struct unwind_rule){ .cfa = 0xff }))
#define FP_BITS	    (~(OFFSET_BITS | CFA_BITS))
#define OFFSET(n)   (word_of((struct unwind_rule){ .cfa_offset = (n) }))
#define CFA(kind)   (word_of((struct unwind_rule){ .cfa = (kind) }))
#define FP_AT(offset)                                         \
	(word_of((struct unwind_rule){ .fp_offset = (offset), \
				       .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_CFA) }))

/* A run in progress: small enough for the compiler to keep in registers. */
struct run {
	const uint8_t *at, *end;
	uint64_t now, initial; /* rules */
	unsigned int depth;
	int32_t data_align;
	uint64_t remembered[CFI_REMEMBER_MAX];
};

static inline void set_bits(struct run *run, uint64_t bits, uint64_t value)
{
	run->now = (run->now & ~bits) | value;
}

/* Reads a number of one or two bytes; false when it is longer, or missing. */
static inline bool read_operand(struct run *run, uint32_t *ret_value)
{
	uint32_t value;

	if (run->at == run->end)
		return false;
	value = *run->at++;
	if (__builtin_expect(value & 0x80, 0)) {
		if (run->at == run->end || *run->at & 0x80)
			return false;
		value = (value & 0x7f) | (uint32_t)*run->at++ << 7;
	}
	*ret_value = value;
	return true;
}

/* Reads how far the address advances, a number of `bytes` bytes. */
static inline bool read_distance(struct run *run, size_t bytes, uint32_t *ret_distance)
{
	if ((size_t)(run->end - run->at) < bytes)
		return false;
	*ret_distance = 0;
	memcpy(ret_distance, run->at, bytes);
	run->at += bytes;
	return true;
}

/* Records that a register is saved at CFA + factor * data_align. */
static inline bool save_register(struct run *run, uint32_t reg, uint32_t factor)
{
	if (reg == CFI_FP) {
		if (factor > 127)
			return false;
		set_bits(run, FP_BITS, FP_AT((int16_t)((int32_t)factor * run->data_align)));
	}
	return reg != CFI_SP && reg != CFI_PC;
}

/* Records that a register has its value from the function's start. */
static inline bool restore_register(struct run *run, uint32_t reg)
{
	if (reg == CFI_FP)
		set_bits(run, FP_BITS, run->initial & FP_BITS);
	return reg != CFI_SP && reg != CFI_PC;
}

static inline bool set_base(struct run *run, uint32_t reg)
{
	set_bits(run, CFA_BITS, reg == CFI_SP ? CFA(UNWIND_CFA_SP) : CFA(UNWIND_CFA_FP));
	return reg == CFI_SP || reg == CFI_FP;
}

static inline bool set_offset(struct run *run)
{
	uint32_t n;

	if (!read_operand(run, &n))
		return false;
	set_bits(run, OFFSET_BITS, OFFSET((int32_t)n));
	return true;
}

static inline bool push_state(struct run *run)
{
	if (run->depth == CFI_REMEMBER_MAX)
		return false;
	run->remembered[run->depth++] = run->now;
	return true;
}

static inline bool pop_state(struct run *run)
{
	if (run->depth == 0)
		return false;
	run->now = run->remembered[--run->depth];
	return true;
}

/*
 * Runs the next instruction, of which at least one byte is left. False: it is not plain.
 * *ret_distance is how far the address advances.
 */
static inline bool step_instruction(struct run *run, uint32_t *ret_distance)
{
	uint8_t op = *run->at++;
	uint32_t n;

	*ret_distance = 0;
	if ((op & 0xc0) == CFI_OP_ADVANCE) {
		*ret_distance = op & 0x3f;
		return true;
	}
	if ((op & 0xc0) == CFI_OP_OFFSET)
		return read_operand(run, &n) && save_register(run, op & 0x3f, n);
	if ((op & 0xc0) == CFI_OP_RESTORE)
		return restore_register(run, op & 0x3f);
	switch (op) {
	case CFI_OP_NOP:
		return true;
	case CFI_OP_ADVANCE1:
		return read_distance(run, 1, ret_distance);
	case CFI_OP_ADVANCE2:
		return read_distance(run, 2, ret_distance);
	case CFI_OP_ADVANCE4:
		return read_distance(run, 4, ret_distance);
	case CFI_OP_REMEMBER:
		return push_state(run);
	case CFI_OP_RESTORE_STATE:
		return pop_state(run);
	case CFI_OP_CFA:
		return read_operand(run, &n) && set_base(run, n) && set_offset(run);
	case CFI_OP_CFA_REGISTER:
		return read_operand(run, &n) && set_base(run, n);
	case CFI_OP_CFA_OFFSET:
		return set_offset(run);
	case CFI_OP_ARGS_SIZE:
		return read_operand(run, &n);
	default:
		return false;
	}
}

/* The rows being written; there is space for them. */
struct rows {
	struct unwind_row *next;
	uint64_t word; /* the rule of the last state as a word */
	uint32_t rule; /* its index, or the index of the row before the function, or NO_RULE */
	uint32_t states;
};

#define NO_RULE UINT32_MAX

/* Appends a row for the state, unless the last row has the same rule. */
static inline int put_row(struct rows *rows, uint64_t word, uint64_t pc, struct unwind_rules *rules,
			  uint32_t limit)
{
	uint16_t rule;
	int r;

	if (word == rows->word)
		return 0;
	r = unwind_rules_index(rules, rule_of(word), limit, &rule);
	if (r < 0)
		return r;
	rows->word = word;
	rows->states++;
	rows->next->pc = (uint32_t)pc;
	rows->next->rule = rule;
	rows->next->pad = 0;
	rows->next += rule != rows->rule; /* the next row overwrites one with the same rule */
	rows->rule = rule;
	return 0;
}

/* Runs all instructions. Returns 1, 0 or -errno like unwind_plain_run. */
static inline int run_all(struct run *run, const struct unwind_plain_text *text, struct rows *rows,
			  struct unwind_rules *rules, uint32_t limit)
{
	uint64_t pc = text->start;
	uint32_t distance;
	int r;

	while (run->at != run->end) {
		if (__builtin_expect(!step_instruction(run, &distance), 0))
			return 0;
		if (distance == 0)
			continue;
		r = put_row(rows, run->now, pc, rules, limit);
		pc += distance;
		if (r < 0 || pc >= text->end)
			return r < 0 ? r : 1;
	}
	r = put_row(rows, run->now, pc, rules, limit);
	return r < 0 ? r : 1;
}

/*
 * Returns how many bytes to run, without the nop instructions that pad the entry. When the last
 * instruction itself ends in zeros it loses them, and then is not plain.
 */
static inline size_t plain_bytes(const struct cfi_bytes *code)
{
	size_t bytes = cfi_bytes_left(code);
	uint64_t last;

	if (bytes < sizeof(last))
		return bytes;
	memcpy(&last, code->end - sizeof(last), sizeof(last));
	return bytes - (last ? (size_t)__builtin_clzll(last) / 8 : 0);
}

int unwind_plain_run(const struct unwind_plain *plain, const struct unwind_plain_text *text,
		     struct unwind_rules *rules, uint32_t limit, struct unwind_table *table,
		     uint64_t *steps)
{
	size_t bytes = plain_bytes(&text->code);
	struct rows rows = { .rule = NO_RULE };
	struct run run = { .at = text->code.at,
			   .end = text->code.at + bytes,
			   .now = word_of(plain->initial),
			   .initial = word_of(plain->initial),
			   .data_align = plain->data_align };
	int r;

	if (bytes >= CODE_MAX)
		return 0;
	if (table->row_space - table->row_count <= bytes) {
		r = unwind_table_grow(table, (uint32_t)bytes + 1);
		if (r < 0)
			return r == -EOVERFLOW ? 0 : r; /* the function may have fewer rows */
	}
	rows.next = table->rows + table->row_count;
	if (table->row_count > 0)
		rows.rule = rows.next[-1].rule;
	r = run_all(&run, text, &rows, rules, limit);
	*steps += (uint64_t)(run.at - text->code.at);
	if (r > 0) {
		table->row_count = (uint32_t)(rows.next - table->rows);
		table->counts.states += rows.states;
	}
	return r;
}
