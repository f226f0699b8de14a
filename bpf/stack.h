/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack.h: the one function that takes the stacks of the current task. An unwinder of the kernel
 * side's own (by rows compiled from .eh_frame) goes in here and nowhere else: what it must keep is
 * the layout of struct stack_buffer and that only addresses, never memory, leave it.
 */
#ifndef TROCAR_BPF_STACK_H
#define TROCAR_BPF_STACK_H

#include "bpf/maps.h"

#define KERNEL_STACK_BYTES (STACK_FRAMES * sizeof(__u64))
#define USER_RAW_BYTES	   (STACK_FRAMES * sizeof(__u64))
#define USER_ID_BYTES	   (STACK_FRAMES * sizeof(struct frame_build_id))

_Static_assert(sizeof(struct frame_build_id) == sizeof(struct bpf_stack_build_id), "frame layout");

/*
 * A sample as it goes into the ring: kernel frames, then directly behind them user frames; behind
 * those that are build-ids, their addresses (SAMPLE_ADDRESSES).
 */
struct stack_buffer {
	struct sample sample;
	__u8 frames[KERNEL_STACK_BYTES + USER_ID_BYTES + USER_RAW_BYTES];
	__u32 calls; /* the sampler's own, not in the record: the consumer is to be woken */
};

enum stack_want {
	STACK_KERNEL = 1u << 0,
	STACK_USER = 1u << 1,
	STACK_BUILD_ID = 1u << 2, /* user frames as struct frame_build_id, else addresses */
};

/* Holds a length within `max`, in a form that no compiler turns into one the verifier cannot
 * follow. */
static __always_inline __u64 stack_bound(long bytes, __u64 max)
{
	__u64 n = bytes < 0 ? 0 : (__u64)bytes;

	asm volatile("" : "+r"(n));
	return n > max ? max : n;
}

/*
 * Puts the addresses of the `count` frames that end at `at` behind them: with both, the consumer
 * learns which mapping has which build-id. Returns their bytes, 0 unless each frame has its own.
 */
static __always_inline __u64 stack_addresses(void *ctx, struct stack_buffer *b, __u64 at,
					     __u32 count)
{
	long r = bpf_get_stack(ctx, b->frames + stack_bound(at, KERNEL_STACK_BYTES + USER_ID_BYTES),
			       USER_RAW_BYTES, BPF_F_USER_STACK);

	if (r <= 0 || r != (long)(count * sizeof(__u64)))
		return 0;
	b->sample.flags |= SAMPLE_ADDRESSES;
	return stack_bound(r, USER_RAW_BYTES);
}

/*
 * Fetches the stacks named by `want` (enum stack_want) into b->frames; sets kernel_frames,
 * user_frames, kernel_error and user_error of b->sample, and SAMPLE_ADDRESSES. Returns the bytes of
 * frames, at most sizeof(b->frames). A stack that is not wanted or that is empty is 0 frames and no
 * error (bpf_get_stack, kernel/bpf/stackmap.c).
 */
static __always_inline __u64 stack_take(void *ctx, struct stack_buffer *b, __u32 want)
{
	__u64 kernel_bytes = 0, user_bytes = 0;
	long r = 0;

	if (want & STACK_KERNEL)
		r = bpf_get_stack(ctx, b->frames, KERNEL_STACK_BYTES, 0);
	b->sample.kernel_error = r < 0 ? r : 0;
	kernel_bytes = stack_bound(r, KERNEL_STACK_BYTES);

	r = 0;
	if (want & STACK_USER) {
		if (want & STACK_BUILD_ID)
			r = bpf_get_stack(ctx, b->frames + kernel_bytes, USER_ID_BYTES,
					  BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
		else
			r = bpf_get_stack(ctx, b->frames + kernel_bytes, USER_RAW_BYTES,
					  BPF_F_USER_STACK);
	}
	b->sample.user_error = r < 0 ? r : 0;
	user_bytes = stack_bound(r, USER_ID_BYTES);

	b->sample.kernel_frames = kernel_bytes / sizeof(__u64);
	b->sample.user_frames = want & STACK_BUILD_ID ? user_bytes / sizeof(struct frame_build_id)
						      : user_bytes / sizeof(__u64);
	if (want & STACK_BUILD_ID && user_bytes)
		user_bytes +=
			stack_addresses(ctx, b, kernel_bytes + user_bytes, b->sample.user_frames);
	return stack_bound(kernel_bytes + user_bytes, sizeof(b->frames));
}

#endif
