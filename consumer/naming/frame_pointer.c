/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/naming/frame_pointer.h"

#include <string.h>

#include "shared/elf/x86_insn.h"
#include "shared/tools/macro.h"

#define PROLOGUE_BYTES \
	128	    /* bytes in which a function sets its frame pointer; Go tests its stack first */
#define TARGETS	 64 /* forward branches with a saved state */
#define FRAME_AT 16 /* bytes from the caller's stack pointer down to the saved register */
#define NOWHERE	 INT64_MAX

/* Where the registers are, in bytes below the caller's stack pointer; NOWHERE: not known. */
struct state {
	int64_t sp, fp, saved; /* saved: where the caller's frame pointer is */
	bool known;
};

/* State while the instructions of a function are followed, from the first on. */
struct following {
	struct state state;
	struct {
		int64_t at;
		struct state state;
	} targets[TARGETS];
	size_t count;
};

static bool is_framed(const struct state *s)
{
	return s->known && s->fp == FRAME_AT && s->saved == FRAME_AT;
}

/* Saves the state for the instruction at `at`, the target of a branch. */
static void note_target(struct following *f, int64_t at)
{
	if (f->count < TARGETS) {
		f->targets[f->count].at = at;
		f->targets[f->count++].state = f->state;
	}
}

/* Takes the state of a branch to `at` if the instruction is reached only by a branch. */
static void meet_target(struct following *f, int64_t at)
{
	for (size_t i = 0; i < f->count && !f->state.known; i++)
		if (f->targets[i].at == at)
			f->state = f->targets[i].state;
}

/* Applies an instruction to the registers. If the stack pointer is lost, the frame stays valid. */
static void apply_effect(struct state *s, const struct x86_insn *i)
{
	switch (i->effect) {
	case X86_SP_ADD:
		s->sp = s->sp == NOWHERE ? NOWHERE : s->sp - i->value;
		break;
	case X86_SP_FROM_FP:
		s->sp = s->fp == NOWHERE ? NOWHERE : s->fp - i->value;
		break;
	case X86_SP_LOST:
		s->sp = NOWHERE;
		break;
	case X86_FP_FROM_SP:
		s->fp = s->sp == NOWHERE ? NOWHERE : s->sp - i->value;
		break;
	case X86_FP_PUSH:
		s->sp = s->sp == NOWHERE ? NOWHERE : s->sp + 8;
		s->saved = s->fp == NOWHERE ? s->sp : s->saved;
		break;
	case X86_FP_STORE:
		if (s->fp == NOWHERE && s->sp != NOWHERE)
			s->saved = s->sp - i->value;
		break;
	case X86_FP_POP:
	case X86_FP_LOAD:
	case X86_FP_LOST:
	case X86_LEAVE:
		s->fp = s->saved = NOWHERE;
		break;
	default:
		break;
	}
}

/* Follows one instruction, at `at`. */
static void follow_insn(struct following *f, int64_t at, const struct x86_insn *i)
{
	apply_effect(&f->state, i);
	if (i->has_target && i->target > 0 && (i->effect == X86_BRANCH || i->effect == X86_JUMP))
		note_target(f, at + i->target);
	if (i->effect == X86_JUMP || i->effect == X86_JUMP_UNKNOWN || i->effect == X86_RETURN ||
	    i->effect == X86_TRAP)
		f->state.known = false;
}

/*
 * Follows 64-bit instructions up to offset `to`. With `early`, returns true as soon as the frame
 * pointer is set.
 */
static bool follow_x86(const uint8_t *code, size_t bytes, size_t to, bool early)
{
	struct following f = { .state = { 8, NOWHERE, NOWHERE, true } };
	struct x86_insn i;

	for (size_t at = 0; at < to; at += i.bytes) {
		meet_target(&f, (int64_t)at);
		if (early && is_framed(&f.state))
			return true;
		if (!x86_insn_read(code + at, bytes - at, &i) || i.bytes > to - at)
			return false;
		follow_insn(&f, (int64_t)at, &i);
	}
	meet_target(&f, (int64_t)to);
	return is_framed(&f.state);
}

/*
 * For 32-bit code, requires "push %ebp; mov %esp,%ebp" at the start and, in a leaf, that no later
 * byte may be "pop %ebp" or "leave".
 */
static bool follow_narrow(const uint8_t *code, size_t to, bool calls)
{
	static const uint8_t forms[][3] = { { 0x55, 0x89, 0xe5 }, { 0x55, 0x8b, 0xec } };

	if (to < sizeof(forms[0]) ||
	    (memcmp(code, forms[0], 3) != 0 && memcmp(code, forms[1], 3) != 0))
		return false;
	for (size_t i = sizeof(forms[0]); i < to && !calls; i++)
		if (code[i] == 0x5d || code[i] == 0xc9)
			return false;
	return true;
}

/*
 * Requires stp x29, x30, [sp, ...]; add x29, sp, ... and, in a leaf, no ldp x29, x30, [sp], ...
 * after it.
 */
static bool follow_arm64(const uint8_t *code, size_t to, bool calls)
{
	bool stored = false, set = false;
	uint32_t word;

	for (size_t at = 0; at + sizeof(word) <= to; at += sizeof(word)) {
		memcpy(&word, code + at, sizeof(word));
		stored = stored || (word & 0xfe407fff) == 0xa8007bfd;
		set = set || (stored && (word & 0xffc003ff) == 0x910003fd);
		if (set && !calls && (word & 0xfe407fff) == 0xa8407bfd)
			return false;
	}
	return set;
}

bool frame_pointer_is_set(const struct code_file *f, uint64_t start, uint64_t at, bool calls)
{
	uint8_t code[FRAME_POINTER_BYTES];
	uint64_t left = f->image.bytes > start ? f->image.bytes - start : 0;
	size_t to, bytes;

	if (at < start || (!calls && at - start > sizeof(code) - X86_INSN_MAX))
		return false;
	to = (size_t)(calls ? MIN(at - start, (uint64_t)PROLOGUE_BYTES) : at - start);
	bytes = (size_t)MIN(left, (uint64_t)to + X86_INSN_MAX);
	if (bytes < to || !code_files_read(f, start, code, bytes))
		return false;
	if (f->arm64)
		return follow_arm64(code, to, calls);
	return f->wide ? follow_x86(code, bytes, to, calls) : follow_narrow(code, to, calls);
}
