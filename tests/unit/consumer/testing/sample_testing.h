/* SPDX-License-Identifier: BSD-2-Clause */
/* sample_testing.h: samples as the kernel side writes them. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_SAMPLE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_SAMPLE_TESTING_H

#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/sampling/sample_record.h"
#include "shared/abi/abi.h"
#include "shared/tools/clock.h"

#define FAKE_TGID  100u
#define FAKE_START 5u

/* A sound record with raw frames or build-ids, all zeros; its exact length goes to *ret_bytes. The
 * caller frees it. */
static inline struct sample *fake_sample(uint16_t kernel, uint16_t user, uint32_t flags,
					 size_t *ret_bytes)
{
	size_t each =
		(flags & SAMPLE_BUILD_ID ? sizeof(struct frame_build_id) : 0) +
		(flags & SAMPLE_BUILD_ID && !(flags & SAMPLE_ADDRESSES) ? 0 : sizeof(uint64_t));
	size_t bytes = sizeof(struct sample) + kernel * sizeof(uint64_t) + user * each +
		       (flags & SAMPLE_WAKER ? sizeof(struct sample_waker) : 0);
	struct sample *s = calloc(1, bytes);

	assert_non_null(s);
	s->time_ns = clock_mono_ns();
	s->tgid = s->tid = FAKE_TGID;
	s->start_ns = FAKE_START;
	s->flags = flags;
	s->kernel_frames = kernel;
	s->user_frames = user;
	strcpy(s->comm, "node");
	for (uint16_t i = 0; i < kernel; i++)
		((uint64_t *)(s + 1))[i] = 0xffffffff81000000ULL + i;
	*ret_bytes = bytes;
	return s;
}

/* Its user frames. */
static inline uint64_t *fake_user_words(struct sample *s)
{
	return (uint64_t *)(s + 1) + s->kernel_frames;
}

/* The bytes that its flags and counts ask for. */
static inline size_t fake_sample_bytes(const struct sample *s)
{
	const struct frame_build_id *ids = sample_record_ids(s), *leaf = sample_record_leaf_id(s);
	const uint64_t *addresses = sample_record_addresses(s);
	const void *end;

	if (leaf)
		end = leaf + 1;
	else if (addresses)
		end = addresses + s->user_frames;
	else
		end = ids + s->user_frames;
	return (size_t)((const uint8_t *)end - (const uint8_t *)s);
}

#endif
