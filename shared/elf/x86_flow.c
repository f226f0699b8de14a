/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/elf/x86_flow.h"

#include <stdbool.h>
#include <string.h>

#include "shared/elf/x86_insn.h"
#include "shared/tools/macro.h"

/* The mark of a byte has the length of the reached instruction that begins there, and this bit. */
#define OTHER 0x80u /* another function, or data, begins here */

struct walk {
	struct x86_flow *flow;
	const uint8_t *code;
	size_t bytes, open;
};

static bool read_at(const struct walk *w, size_t at, struct x86_insn *ret_insn)
{
	return at < w->bytes && x86_insn_read(w->code + at, w->bytes - at, ret_insn);
}

static bool is_padding(const struct walk *w, size_t at)
{
	struct x86_insn insn;

	return read_at(w, at, &insn) && insn.padding;
}

/* Marks the instruction at `at` as reached, and queues it once. */
static void reach_insn(struct walk *w, int64_t at)
{
	struct x86_insn insn;

	if (at < 0 || !read_at(w, (size_t)at, &insn) || (w->flow->marks[at] & (OTHER - 1)))
		return;
	w->flow->marks[at] |= insn.bytes;
	w->flow->open[w->open++] = (uint16_t)at;
}

static void mark_other(struct walk *w, int64_t at)
{
	if (at > 0 && at < (int64_t)w->bytes)
		w->flow->marks[at] |= OTHER;
}

static bool is_syscall(const uint8_t *code, size_t bytes)
{
	return bytes == 2 && code[0] == 0x0f && code[1] == 0x05;
}

/*
 * Returns whether the next instruction can follow this one. A call or system call before padding is
 * the last instruction of the function: it does not return.
 */
static bool goes_on(const struct walk *w, size_t at, const struct x86_insn *insn)
{
	switch (insn->effect) {
	case X86_RETURN:
	case X86_JUMP:
	case X86_JUMP_UNKNOWN:
	case X86_TRAP:
		return false;
	case X86_CALL:
		return !is_padding(w, at + insn->bytes);
	default:
		return !is_syscall(w->code + at, insn->bytes) || !is_padding(w, at + insn->bytes);
	}
}

static void follow_insn(struct walk *w, size_t at)
{
	struct x86_insn insn;

	if (!read_at(w, at, &insn))
		return;
	if (insn.has_target && (insn.effect == X86_JUMP || insn.effect == X86_BRANCH))
		reach_insn(w, (int64_t)at + insn.target);
	else if (insn.has_target)
		mark_other(w, (int64_t)at + insn.target);
	if (goes_on(w, at, &insn))
		reach_insn(w, (int64_t)at + insn.bytes);
}

/*
 * Skips padding from `at` on. Returns the offset of the reached instruction after it; 0: there is
 * none.
 */
static size_t skip_padding(const struct walk *w, size_t at)
{
	struct x86_insn insn;

	while (at < w->bytes && w->flow->marks[at] == 0 && read_at(w, at, &insn) && insn.padding)
		at += insn.bytes;
	return at < w->bytes && w->flow->marks[at] != 0 ? at : 0;
}

/* Returns the offset of the first gap between the reached instructions. */
static size_t find_gap(const struct walk *w)
{
	size_t end = 0, at = 0;

	for (;;) {
		if (at >= w->bytes || (at > 0 && (w->flow->marks[at] & OTHER)))
			return end;
		if (w->flow->marks[at] != 0)
			at = end = at + w->flow->marks[at];
		else if ((at = skip_padding(w, at)) == 0)
			return end;
	}
}

size_t x86_flow_bytes(struct x86_flow *flow, const uint8_t *code, size_t bytes)
{
	struct walk w = { .flow = flow, .code = code, .bytes = MIN(bytes, (size_t)X86_FLOW_MAX) };

	memset(flow->marks, 0, w.bytes);
	reach_insn(&w, 0);
	for (size_t i = 0; i < w.open; i++)
		follow_insn(&w, flow->open[i]);
	return find_gap(&w);
}
