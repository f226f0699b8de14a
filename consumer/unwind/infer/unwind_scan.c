/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/infer/unwind_scan.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/unwind/infer/unwind_frame.h"
#include "shared/elf/x86_insn.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define STATES_MAX     4096
#define STATES_SLOTS   (2 * STATES_MAX) /* a power of two */
#define STEPS_PER_BYTE 16		/* musl needs 2; beyond the limit every function returns */
#define ROUNDS_MAX     16		/* of find_returning: greater than the nesting of calls */
#define REST_FROM      4096		/* bytes: shorter text contains pieces of startup code */

/* The state of a byte of text: 0 (unknown), DEAD, or the number of its frame plus 1. */
#define DEAD UINT16_MAX

enum start {
	START = 1,   /* a function begins there */
	RETURNS = 2, /* it returns, as far as is known */
	VISITED = 4, /* visited while does_return runs */
};

struct scanner {
	const struct unwind_scan *scan;
	uint16_t *at;	/* owned; for each byte: the state of an instruction that begins there */
	uint8_t *start; /* owned; for each byte: bits of enum start */
	uint32_t *met;	/* owned; the function's reached offsets, in that order */
	uint32_t met_count;
	uint64_t steps, steps_max; /* instructions that does_return has read, and their limit */
	bool unknown_jump;	   /* the function that is followed jumps to an unknown address */
	bool left;		   /* the function returned or continued in another function */
	struct unwind_frame frames[STATES_MAX];
	uint16_t slots[STATES_SLOTS];
	uint32_t frame_count;
};

static void scanner_free(struct scanner **s)
{
	if (!*s)
		return;
	free((*s)->at);
	free((*s)->start);
	free((*s)->met);
	free(*s);
}

/* Returns the number of a frame; STATES_MAX when there are too many. */
static uint32_t number_of(struct scanner *s, const struct unwind_frame *frame)
{
	uint64_t words[2];
	uint32_t slot;

	memcpy(words, frame, sizeof(words));
	slot = (uint32_t)((words[0] * 0x9e3779b97f4a7c15ULL ^ words[1]) * 0xc2b2ae3d27d4eb4fULL >>
			  40) &
	       (STATES_SLOTS - 1);
	for (; s->slots[slot] != 0; slot = (slot + 1) & (STATES_SLOTS - 1))
		if (memcmp(&s->frames[s->slots[slot] - 1], frame, sizeof(*frame)) == 0)
			return s->slots[slot] - 1u;
	if (s->frame_count == STATES_MAX)
		return STATES_MAX;
	s->frames[s->frame_count] = *frame;
	s->slots[slot] = (uint16_t)++s->frame_count;
	return s->frame_count - 1;
}

/*
 * Records that the instruction at `offset` is reached with frame `f`. False: it was reached with
 * another frame.
 */
static bool reach_instruction(struct scanner *s, int64_t offset, const struct unwind_frame *f)
{
	uint32_t number;

	if (offset < 0 || offset >= s->scan->bytes)
		return unwind_frame_entry(f); /* other text: enters a function there */
	if (s->start[offset] & START) {	      /* another function, as a tail call */
		s->left = true;
		return unwind_frame_entry(f);
	}
	number = number_of(s, f);
	if (number == STATES_MAX)
		return false;
	if (s->at[offset] != 0)
		return s->at[offset] == number + 1;
	s->at[offset] = (uint16_t)(number + 1);
	s->met[s->met_count++] = (uint32_t)offset;
	return true;
}

/*
 * Whether there is only padding from `offset` to the next function: then the call before it does
 * not return.
 */
static bool ends_text(const struct scanner *s, int64_t offset)
{
	struct x86_insn insn;

	for (; offset < s->scan->bytes && !(s->start[offset] & START); offset += insn.bytes)
		if (!x86_insn_read(s->scan->text + offset, s->scan->bytes - (size_t)offset,
				   &insn) ||
		    !insn.padding)
			return false;
	return true;
}

/* Whether the call at `offset` may return. Assumes so for a function outside this text. */
static bool call_returns(const struct scanner *s, uint32_t offset, const struct x86_insn *insn)
{
	int64_t to = offset + insn->target;

	if (!insn->has_target || to < 0 || to >= s->scan->bytes)
		return true;
	return (s->start[to] & (START | RETURNS)) != START;
}

/* Adds an offset that does_return has not visited yet. */
static void visit_offset(struct scanner *s, int64_t offset)
{
	if (offset < 0 || offset >= s->scan->bytes || (s->start[offset] & VISITED))
		return;
	s->start[offset] |= VISITED;
	s->met[s->met_count++] = (uint32_t)offset;
}

/*
 * Whether the instruction at `offset` leads out of its function; otherwise adds the instructions
 * that come next.
 */
static bool leads_out(struct scanner *s, uint32_t offset)
{
	struct x86_insn insn;
	int64_t next, to;

	if (!x86_insn_read(s->scan->text + offset, s->scan->bytes - offset, &insn))
		return true; /* unknown instruction: it may lead out */
	next = (int64_t)offset + insn.bytes;
	to = offset + insn.target;
	switch (insn.effect) {
	case X86_RETURN:
	case X86_JUMP_UNKNOWN:
		return true;
	case X86_TRAP:
		return false;
	case X86_JUMP:
		if (to < 0 || to >= s->scan->bytes)
			return true;
		visit_offset(s, to);
		return false;
	case X86_BRANCH:
		visit_offset(s, to);
		break;
	case X86_CALL:
		if (!call_returns(s, offset, &insn) || ends_text(s, next))
			return false;
		break;
	default:
		break;
	}
	visit_offset(s, next);
	return false;
}

static bool does_return(struct scanner *s, uint32_t start)
{
	bool out = false;

	s->met_count = 0;
	visit_offset(s, start);
	for (uint32_t i = 0; i < s->met_count && !out; i++, s->steps++)
		out = leads_out(s, s->met[i]) || s->steps > s->steps_max;
	for (uint32_t i = 0; i < s->met_count; i++)
		s->start[s->met[i]] &= (uint8_t)~VISITED;
	return out;
}

/*
 * Finds the functions that return. Initially none does. A function with a way out returns; then
 * functions that return only after calling it may return too, so this repeats until nothing
 * changes.
 */
static void find_returning(struct scanner *s)
{
	bool more = true;

	for (int round = 0; more && round < ROUNDS_MAX; round++) {
		more = false;
		for (uint32_t i = 0; i < s->scan->bytes; i++) {
			if ((s->start[i] & (START | RETURNS)) != START || !does_return(s, i))
				continue;
			s->start[i] |= RETURNS;
			more = true;
		}
	}
}

static bool is_syscall(const uint8_t *code)
{
	return code[0] == 0x0f && code[1] == 0x05;
}

/* Like reach_instruction, for the next instruction without a jump; false at the end of the text. */
static bool go_on(struct scanner *s, int64_t offset, const struct unwind_frame *f)
{
	return offset < s->scan->bytes && reach_instruction(s, offset, f);
}

/* Follows the instruction at `offset`; false when its effect is impossible. */
static bool follow_one(struct scanner *s, uint32_t offset)
{
	struct unwind_frame f = s->frames[s->at[offset] - 1];
	struct x86_insn insn;
	int64_t next;

	if (!x86_insn_read(s->scan->text + offset, s->scan->bytes - offset, &insn))
		return false;
	next = (int64_t)offset + insn.bytes;
	switch (insn.effect) {
	case X86_RETURN:
		s->left = true;
		return unwind_frame_entry(&f);
	case X86_TRAP:
		return true;
	case X86_JUMP_UNKNOWN:
		s->unknown_jump = true;
		return true;
	case X86_JUMP:
		return reach_instruction(s, offset + insn.target, &f);
	case X86_BRANCH:
		return reach_instruction(s, offset + insn.target, &f) && go_on(s, next, &f);
	case X86_CALL:
		return !call_returns(s, offset, &insn) || ends_text(s, next) || go_on(s, next, &f);
	default:
		if (f.kind == UNWIND_FRAME_SIGNAL && is_syscall(s->scan->text + offset))
			return true; /* sigreturn(2): the kernel continues elsewhere */
		unwind_frame_apply(&f, &insn);
		return go_on(s, next, &f);
	}
}

/*
 * Follows a function from its first byte. Returns false if it is not understood; then all of it is
 * DEAD. `sure`: a function is known to begin there; otherwise it must return to count as a
 * function.
 */
static bool follow_function(struct scanner *s, uint32_t start, const struct unwind_frame *frame,
			    bool sure)
{
	bool good;

	s->met_count = 0;
	s->unknown_jump = s->left = false;
	s->at[start] = (uint16_t)(number_of(s, frame) + 1);
	good = s->at[start] <= STATES_MAX;
	s->met[s->met_count++] = start;
	for (uint32_t i = 0; i < s->met_count && good; i++)
		good = follow_one(s, s->met[i]);
	good = good && (sure || s->left);
	for (uint32_t i = 0; i < s->met_count && !good; i++)
		s->at[s->met[i]] = DEAD;
	return good;
}

/*
 * Whether this code ends a signal handler, mov $15,%eax; syscall: the kernel's frame is where this
 * code runs.
 */
static bool is_restorer(const uint8_t *code, size_t left)
{
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5 };
	static const uint8_t narrow[] = { 0xb8, 15, 0, 0, 0, 0x0f, 5 };

	return (left >= sizeof(wide) && memcmp(code, wide, sizeof(wide)) == 0) ||
	       (left >= sizeof(narrow) && memcmp(code, narrow, sizeof(narrow)) == 0);
}

size_t unwind_scan_targets(const struct unwind_scan *scan, uint32_t *ret_pcs)
{
	struct x86_insn insn;
	size_t count = 0;

	for (uint32_t i = 0; i < scan->bytes; i += insn.bytes) {
		if (!x86_insn_read(scan->text + i, scan->bytes - i, &insn)) {
			insn.bytes = 1;
			continue;
		}
		if (insn.has_target && insn.effect != X86_BRANCH && insn.effect != X86_JUMP)
			ret_pcs[count++] = (uint32_t)(scan->pc + i + insn.target);
	}
	return count;
}

static void mark_starts(struct scanner *s)
{
	for (size_t i = 0; i < s->scan->function_count; i++)
		if (s->scan->functions[i] - s->scan->pc < s->scan->bytes)
			s->start[s->scan->functions[i] - s->scan->pc] |= START;
}

static void follow_starts(struct scanner *s, uint32_t *functions)
{
	static const struct unwind_frame entered = { .sp_known = 1, .sp = UNWIND_FRAME_ENTRY };
	static const struct unwind_frame end = { .kind = UNWIND_FRAME_END },
					 signal = { .kind = UNWIND_FRAME_SIGNAL };

	for (uint32_t i = 0; i < s->scan->bytes; i++) {
		const struct unwind_frame *frame = &entered;

		if (is_restorer(s->scan->text + i, s->scan->bytes - i))
			frame = &signal;
		else if (i == s->scan->entry)
			frame = &end;
		else if (!(s->start[i] & START))
			continue;
		if (s->at[i] == 0)
			*functions += follow_function(s, i, frame, true);
	}
}

/*
 * Follows functions that nothing calls: they begin after the end of another function and its
 * padding. Does not look after a function that jumps to an unknown address, because the code there
 * may belong to it.
 */
static void follow_rest(struct scanner *s, uint32_t *functions)
{
	static const struct unwind_frame entered = { .sp_known = 1, .sp = UNWIND_FRAME_ENTRY };
	struct x86_insn insn;
	bool behind = false;

	for (uint32_t i = 0; i < s->scan->bytes; i += insn.bytes) {
		if (!x86_insn_read(s->scan->text + i, s->scan->bytes - i, &insn)) {
			insn.bytes = 1;
			behind = false;
			continue;
		}
		if (s->at[i] == 0 && !insn.padding && behind) {
			*functions += follow_function(s, i, &entered, false);
			behind = !s->unknown_jump;
		}
		if (s->at[i] == DEAD || insn.effect == X86_JUMP_UNKNOWN)
			behind = false;
		else if (s->at[i] != 0)
			behind |= insn.effect == X86_RETURN || insn.effect == X86_JUMP;
	}
}

static bool begins_signal(const struct scanner *s, uint32_t offset)
{
	uint16_t at = s->at[offset];

	return at != 0 && at != DEAD && s->frames[at - 1].kind == UNWIND_FRAME_SIGNAL;
}

/* Appends a row for each change; padding belongs to the code before it. */
static int put_rows(const struct scanner *s, struct unwind_rules *rules, uint32_t limit,
		    struct unwind_table *table)
{
	struct x86_insn insn;
	uint16_t rule = UNWIND_RULE_NONE;
	int r;

	for (uint32_t i = 0; i < s->scan->bytes; i += insn.bytes) {
		uint16_t at = s->at[i];

		if (!x86_insn_read(s->scan->text + i, s->scan->bytes - i, &insn))
			insn = (struct x86_insn){ .bytes = 1 };
		if (i + 1 < s->scan->bytes && begins_signal(s, i + 1))
			at = s->at[i + 1]; /* a walk looks up the byte before a return address */
		if (at != 0 && at != DEAD)
			r = unwind_rules_index(rules, unwind_frame_rule(&s->frames[at - 1]), limit,
					       &rule);
		else
			r = insn.padding ? 0 : (rule = UNWIND_RULE_NONE, 0);
		if (r < 0)
			return r;
		r = unwind_table_push(table, s->scan->pc + i, rule);
		if (r < 0)
			return r;
	}
	return 0;
}

int unwind_scan_text(const struct unwind_scan *scan, struct unwind_rules *rules, uint32_t limit,
		     struct unwind_table *table, uint32_t *functions)
{
	_cleanup_(scanner_free) struct scanner *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->scan = scan;
	s->at = calloc(scan->bytes, sizeof(*s->at));
	s->start = calloc(scan->bytes, 1);
	s->met = malloc((size_t)scan->bytes * sizeof(*s->met));
	if (!s->at || !s->start || !s->met)
		return -ENOMEM;
	mark_starts(s);
	s->steps_max = STEPS_PER_BYTE * (uint64_t)scan->bytes;
	find_returning(s);
	follow_starts(s, functions);
	if (scan->bytes >= REST_FROM)
		follow_rest(s, functions);
	return put_rows(s, rules, limit, table);
}
