/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample_record.h: a record of the samples ring as bytes: checks it and finds its parts. struct
 * sample is followed by the kernel frames, then the user frames. User frames are addresses; with
 * SAMPLE_BUILD_ID the kernel has resolved them, and with SAMPLE_ADDRESSES their addresses follow.
 * With SAMPLE_LEAF_ID the build-id of the leaf's file is next. Last is, with SAMPLE_WAKER, a struct
 * sample_waker, or with SAMPLE_RUNTIME a struct sample_runtime with its frames. Pure.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_SAMPLE_RECORD_H
#define TROCAR_CONSUMER_SAMPLING_SAMPLE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"

/*
 * Checks `bytes` bytes against the layout of struct sample: the lengths, the counts, and that slot
 * and CPU exist in the loader's maps. Fuzzed (tests/fuzz/consumer/sample.c).
 */
bool sample_record_valid(const void *record, size_t bytes, uint32_t slots, uint32_t cpus);

/* ---- parts of a valid record */

static inline const uint64_t *sample_record_kernel(const struct sample *record)
{
	return (const uint64_t *)(record + 1);
}

/* Returns the frames that the kernel resolved; NULL without SAMPLE_BUILD_ID. */
static inline const struct frame_build_id *sample_record_ids(const struct sample *record)
{
	const uint64_t *user = sample_record_kernel(record) + record->kernel_frames;

	return record->flags & SAMPLE_BUILD_ID ? (const struct frame_build_id *)user : NULL;
}

/* Returns the addresses of the user frames; NULL if the record has none. */
static inline const uint64_t *sample_record_addresses(const struct sample *record)
{
	const struct frame_build_id *ids = sample_record_ids(record);

	if (!ids)
		return sample_record_kernel(record) + record->kernel_frames;
	if (!(record->flags & SAMPLE_ADDRESSES))
		return NULL;
	return (const uint64_t *)(ids + record->user_frames);
}

/* Returns the kernel's resolution of the leaf of a walked stack; NULL if the record has none. */
static inline const struct frame_build_id *sample_record_leaf_id(const struct sample *record)
{
	if (record->flags & SAMPLE_BUILD_ID || !(record->flags & SAMPLE_LEAF_ID))
		return NULL;
	return (const struct frame_build_id *)(sample_record_addresses(record) +
					       record->user_frames);
}

/* Returns the first byte after the native frames and the build-id of the leaf. */
static inline const void *sample_record_rest(const struct sample *record)
{
	const struct frame_build_id *ids = sample_record_ids(record);
	const struct frame_build_id *leaf = sample_record_leaf_id(record);
	const uint64_t *addresses = sample_record_addresses(record);

	if (leaf)
		return leaf + 1;
	/* Frames that the kernel resolved, without addresses, end with their last frame. */
	return addresses ? (const void *)(addresses + record->user_frames)
			 : (const void *)(ids + record->user_frames);
}

/* Returns the time that a waker's stack represents; NULL for a tick's stack. */
static inline const struct sample_waker *sample_record_waker(const struct sample *record)
{
	return record->flags & SAMPLE_WAKER ? sample_record_rest(record) : NULL;
}

/* Returns the frames of a runtime, which follow the result; NULL if the record has none. */
static inline const struct sample_runtime *sample_record_runtime(const struct sample *record)
{
	return record->flags & SAMPLE_RUNTIME ? sample_record_rest(record) : NULL;
}

#endif
