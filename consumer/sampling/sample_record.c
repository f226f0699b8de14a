/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/sample_record.h"

/* Returns whether `bytes` bytes have space for the frames of a runtime that begin at `at`. */
static bool has_runtime(const struct sample *s, size_t at, size_t bytes)
{
	const struct sample_runtime *r = (const void *)((const uint8_t *)s + at);

	if (s->flags & SAMPLE_WAKER || !(s->flags & SAMPLE_UNWOUND) || bytes - at < sizeof(*r))
		return false;
	return r->frames <= RUNTIME_FRAMES_MAX && r->end < RUNTIME_ENDS_ &&
	       bytes - at - sizeof(*r) >= r->frames * sizeof(uint64_t);
}

bool sample_record_valid(const void *record, size_t bytes, uint32_t slots, uint32_t cpus)
{
	const struct sample *s = record;
	size_t user_bytes, rest;

	if (bytes < sizeof(*s))
		return false;
	if (s->kernel_frames > STACK_FRAMES || s->user_frames > STACK_FRAMES)
		return false;
	user_bytes = s->flags & SAMPLE_BUILD_ID ? sizeof(struct frame_build_id) : sizeof(uint64_t);
	if (s->flags & SAMPLE_BUILD_ID && s->flags & SAMPLE_ADDRESSES)
		user_bytes += sizeof(uint64_t);
	rest = sizeof(*s) + s->kernel_frames * sizeof(uint64_t) + s->user_frames * user_bytes +
	       (s->flags & SAMPLE_LEAF_ID ? sizeof(struct frame_build_id) : 0);
	if (bytes < rest + (s->flags & SAMPLE_WAKER ? sizeof(struct sample_waker) : 0))
		return false;
	if (s->flags & SAMPLE_RUNTIME && !has_runtime(s, rest, bytes))
		return false;
	/* System call numbers are never negative. */
	if (s->call > INT32_MAX && s->call < ACCOUNT_CALL_COMPAT)
		return false;
	if (s->flags & SAMPLE_UNWOUND && s->stop_reason >= UNWIND_END_COUNT_)
		return false;
	return s->slot < slots && s->cpu < cpus;
}
