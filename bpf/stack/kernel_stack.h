/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_stack.h: walks the kernel stack that a tick interrupted, as the kernel's own unwinder does
 * (unwind_next_frame of arch/x86/kernel/unwind_orc.c), but with cached rows (orc.h). If the stack
 * contains anything that this walk does not follow, it gives up the whole stack and calls
 * bpf_get_stack. It does not follow BPF code and trampolines, return addresses that a tracer has
 * replaced, and rows that use other registers. One walk in 64 is compared with the result of
 * bpf_get_stack.
 */
#ifndef TROCAR_BPF_STACK_KERNEL_STACK_H
#define TROCAR_BPF_STACK_KERNEL_STACK_H

#include "bpf/kernel/kernel_word.h"
#include "bpf/stack/orc_rows.h"
#include "bpf/stack/stack.h"

#define KERNEL_STACK_WRONG_MAX 4 /* number of wrong walks after which no more walks are made */

/* One walk in this many is compared. A test compares all. */
const volatile __u32 kernel_stack_checked __weak = 64;

/* Kernel and modules are in the last 2 GiB of addresses. */
#define KERNEL_STACK_IS_CODE(ip) ((ip) >> 31 == (1ull << 33) - 1)

#define KERNEL_STACK_AT_ONCE 2 /* frames per loop iteration */

#define KERNEL_STACK_BELOW 8	/* words read below the requested one */
#define KERNEL_STACK_PAGE  4096 /* a page of a stack is mapped as a whole or not at all */

/*
 * The state of a walk is in stack_scratch. The verifier does not track the content of that map, so
 * it checks one step only once.
 */

/* The map elements that a walk uses. */
struct kernel_stack_tables {
	struct stack_buffer *buffer;
	struct orc_rows *rows;
};

/*
 * Reads the words around `at`, up to the end of their page. A global function: the verifier checks
 * it once.
 */
__weak __noinline int kernel_stack_fill(__u64 at)
{
	__u64 base = at - KERNEL_STACK_BELOW * sizeof(__u64), bytes;
	struct stack_buffer *b = map_single(&stack_scratch);
	struct kernel_walk *s;

	if (!b)
		return 0;
	s = &b->kernel;
	bytes = KERNEL_STACK_PAGE - (base & (KERNEL_STACK_PAGE - 1));
	if (bytes <= KERNEL_STACK_BELOW * sizeof(__u64)) {
		base = at;
		bytes = KERNEL_STACK_PAGE;
	}
	bytes = bound_bytes((long)bytes, sizeof(s->words));
	s->base = base;
	s->bytes = bpf_probe_read_kernel(s->words, bytes, (const void *)base) ? 0 : bytes;
	return 0;
}

/* Returns the word of the kernel stack at `at`; 0 if it is not mapped. */
static __always_inline __u64 stack_word(const struct kernel_walk *s, __u64 at)
{
	if (has_cast)
		return kernel_word(at);
	if (at - s->base >= s->bytes)
		kernel_stack_fill(at);
	if (at - s->base >= s->bytes || at % sizeof(__u64))
		return 0;
	return s->words[(at - s->base) / sizeof(__u64) & (KERNEL_STACK_WORDS - 1)];
}

/* Returns the caller's stack pointer, computed by the row. */
static __always_inline __u64 find_frame(const struct kernel_walk *s, __u32 row)
{
	switch (ORC_ROW_FROM(row)) {
	case ORC_FROM_SP:
		return s->sp + ORC_ROW_SP(row);
	case ORC_FROM_BP:
		return s->bp + ORC_ROW_SP(row);
	case ORC_FROM_SP_WORD:
		return stack_word(s, s->sp) + ORC_ROW_SP(row);
	default:
		return stack_word(s, s->bp + ORC_ROW_SP(row));
	}
}

/* Restores the caller's bp if the row has it saved in the frame. */
static __always_inline void restore_bp(struct kernel_walk *s, __u32 row, __u64 frame)
{
	if (ORC_ROW_SAVED(row) != ORC_SAVED_NOT)
		s->bp = stack_word(s,
				   ORC_ROW_BP(row) +
					   (ORC_ROW_SAVED(row) == ORC_SAVED_BY_SP ? frame : s->bp));
}

/*
 * Ends the walk if the interrupted code ran in user mode, as at most system calls. Where the kernel
 * itself runs in ring 3 (PVM), the selector is the hardware's for some instructions before the
 * return, at an address of the kernel: such a walk is given up.
 */
static __always_inline bool ends_in_user_mode(struct kernel_walk *s, __u64 cs, __u64 ip)
{
	if (!(stack_word(s, cs) & 3))
		return false;
	s->ended = !KERNEL_STACK_IS_CODE(stack_word(s, ip));
	return true;
}

/*
 * Steps to the caller by any row. Returns 0; 1 at the outermost frame, or if the walk can no longer
 * be trusted. Not inlined, because most frames do not need it (step_out_plain).
 */
static __noinline long step_out_any(struct kernel_walk *s, __u32 row)
{
	__u64 frame = find_frame(s, row), sp = s->sp;

	if (ORC_ROW_KIND(row) == ORC_CALL) {
		s->ip = stack_word(s, frame - sizeof(__u64));
		s->sp = frame;
	} else if (ORC_ROW_KIND(row) == ORC_REGS) {
		if (ends_in_user_mode(s, frame + ORC_PT_CS, frame + ORC_PT_IP))
			return 1;
		s->ip = stack_word(s, frame + ORC_PT_IP);
		s->sp = stack_word(s, frame + ORC_PT_SP);
		if (ORC_ROW_SAVED(row) == ORC_SAVED_NOT)
			s->bp = stack_word(s, frame + ORC_PT_BP);
	} else {
		ends_in_user_mode(s, frame + ORC_IRET_CS, frame);
		return 1;
	}
	restore_bp(s, row, frame);
	s->leaf = !!(row & ORC_ROW_SIGNAL);
	/*
	 * Only a row that loads a word may change to another stack: that of the interrupted code or
	 * of the caller.
	 */
	return ORC_ROW_FROM(row) <= ORC_FROM_BP && s->sp <= sp;
}

/* As step_out_any, for a plain row. */
static __always_inline long step_out_plain(struct kernel_walk *s, __u32 row)
{
	__u64 frame = (ORC_ROW_FROM(row) == ORC_FROM_SP ? s->sp : s->bp) + ORC_ROW_SP(row);

	if (frame <= s->sp)
		return 1;
	s->ip = stack_word(s, frame - sizeof(__u64));
	if (ORC_ROW_SAVED(row) == ORC_SAVED_BY_SP)
		s->bp = stack_word(s, frame + ORC_ROW_BP(row));
	s->sp = frame;
	s->leaf = 0;
	return 0;
}

/* Adds the current frame, and steps to its caller. Returns 1 at the end of the walk. */
static __always_inline long add_kernel_frame(struct stack_buffer *b, struct orc_rows *rows)
{
	struct kernel_walk *s = &b->kernel;
	__u32 row, at = s->frames * sizeof(__u64);
	__u64 ip = s->ip;

	if (!KERNEL_STACK_IS_CODE(ip) || at > KERNEL_STACK_BYTES - sizeof(__u64))
		return 1;
	row = s->leaf ? orc_find_leaf(rows, ip) : orc_find_call(rows, ip - 1, &s->place);
	if (!(row & ORC_ROW_VALID))
		return 1;
	*(__u64 *)(b->frames + at) = ip;
	s->frames++;
	if (row & ORC_ROW_PLAIN)
		return step_out_plain(s, row);
	s->ended = ORC_ROW_KIND(row) == ORC_END;
	return s->ended || step_out_any(s, row);
}

/* Handles several frames per call, because a bpf_loop call takes as long as half a frame. */
static long walk_kernel_frames(__u32 i, struct kernel_stack_tables *w)
{
#pragma clang loop unroll(disable)
	for (int n = 0; n < KERNEL_STACK_AT_ONCE; n++)
		if (add_kernel_frame(w->buffer, w->rows))
			return 1;
	return 0;
}

/*
 * Puts the kernel stack, with these registers in its innermost frame, at the begin of `frames` of
 * stack_scratch. Returns the number of frames; 0 if the walk failed. A global function: the
 * verifier checks it once.
 */
__weak __noinline int kernel_stack_walk(__u64 ip, __u64 sp, __u64 bp)
{
	struct kernel_stack_tables w;
	struct kernel_walk *s;

	w.buffer = map_single(&stack_scratch);
	w.rows = map_single(&orc_rows);
	if (!w.buffer || !w.rows)
		return 0;
	s = &w.buffer->kernel;
	s->ip = ip;
	s->sp = sp;
	s->bp = bp;
	s->leaf = 1;
	s->frames = 0;
	s->ended = 0;
	s->bytes = 0;
	bpf_loop(STACK_FRAMES / KERNEL_STACK_AT_ONCE + 1, walk_kernel_frames, &w, 0);
	return s->ended ? (int)s->frames : 0;
}

#if defined(__TARGET_ARCH_x86)
/* A comparison of frames with the frames at STACK_ADDRESSES. */
struct kernel_stack_compared {
	const struct stack_buffer *buffer;
	__u64 differs;
};

static long compare_frame(__u32 i, struct kernel_stack_compared *c)
{
	__u64 at = i * sizeof(__u64);

	if (i >= STACK_FRAMES)
		return 1;
	c->differs |= *(const __u64 *)(c->buffer->frames + at) ^
		      *(const __u64 *)(c->buffer->frames + STACK_ADDRESSES + at);
	return !!c->differs;
}

/* Returns whether the first `count` frames of `b` equal the frames at STACK_ADDRESSES. */
static __always_inline bool kernel_stack_agrees(const struct stack_buffer *b, __u32 count)
{
	struct kernel_stack_compared compared = { .buffer = b };

	bpf_loop(count, compare_frame, &compared, 0);
	return !compared.differs;
}

/*
 * Compares a walk with the kernel's own. Returns the number of frames. Returns 0 if the two differ,
 * and then removes all cached rows.
 */
static __noinline __u32 check_walk(void *ctx, struct stack_buffer *b, __u32 frames)
{
	struct orc_areas *areas = orc_areas_get();
	long r = bpf_get_stack(ctx, b->frames + STACK_ADDRESSES, USER_RAW_BYTES, 0);

	b->kernel_walks = 0;
	if (r < 0)
		return frames;
	TOTALS_COUNT(kernel_stacks_compared);
	if (bound_bytes(r, USER_RAW_BYTES) / sizeof(__u64) == frames &&
	    kernel_stack_agrees(b, frames))
		return frames;
	TOTALS_COUNT(kernel_stacks_wrong);
	if (areas)
		areas->wrong++;
	orc_forget_rows();
	return 0;
}

/* Returns the number of kernel frames of the walk; 0: use bpf_get_stack instead. */
static __always_inline __u32 try_walk(void *ctx, struct stack_buffer *b)
{
	const volatile __u64 *registers = ctx;
	const struct orc_areas *areas = orc_areas_get();
	__u32 frames;

	if (!areas || !READ_WORD(areas->count) || READ_WORD(areas->wrong) >= KERNEL_STACK_WRONG_MAX)
		return 0;
	frames = kernel_stack_walk(registers[ORC_PT_IP / 8], registers[ORC_PT_SP / 8],
				   registers[ORC_PT_BP / 8]);
	if (!frames)
		TOTALS_COUNT(kernel_stacks_asked);
	else if (++b->kernel_walks >= kernel_stack_checked)
		frames = check_walk(ctx, b, frames);
	return frames;
}
#else
static __always_inline __u32 try_walk(void *ctx, struct stack_buffer *b)
{
	return 0; /* the kernel walks by frame pointers, which is cheap */
}
#endif

/*
 * Puts the kernel stack that a tick interrupted at the begin of b->frames, if it is `wanted`. Sets
 * kernel_frames and kernel_error of b->sample. `ctx` is the context of a perf_event program.
 */
static __always_inline void kernel_stack_take(void *ctx, struct stack_buffer *b, bool wanted)
{
	__u32 frames;
	long r;

	b->sample.kernel_frames = 0;
	b->sample.kernel_error = 0;
	if (!wanted)
		return;
	frames = try_walk(ctx, b);
	r = frames * sizeof(__u64);

	if (!frames)
		r = bpf_get_stack(ctx, b->frames, KERNEL_STACK_BYTES, 0);
	b->sample.kernel_error = r < 0 ? r : 0;
	b->sample.kernel_frames = bound_bytes(r, KERNEL_STACK_BYTES) / sizeof(__u64);
}

#endif
