/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recorder.h: keeps the seconds before a trigger: decoded samples of all watches in time order, in
 * chunks. Chunks older than the longest pre-roll of any rule are freed, and their memory is limited
 * to max_bytes. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_RECORDER_H
#define TROCAR_CONSUMER_SAMPLING_RECORDER_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/sampling/stack_sample.h"

struct recorder_chunk;

struct recorder {
	struct recorder_chunk *oldest, *newest;
	size_t bytes;	  /* of all chunks */
	size_t max_bytes; /* limit of bytes */
	uint64_t evicted; /* samples freed early because of the limit */
	/*
	 * Time of the newest evicted sample: of any watch, samples up to this time may be missing.
	 */
	uint64_t evicted_ns;
};

void recorder_init(struct recorder *r, size_t max_bytes);
void recorder_done(struct recorder *r);

/* Keeps a copy of `sample`; without memory it counts the sample as evicted. */
void recorder_add(struct recorder *r, const struct stack_sample *sample);

/* Frees the chunks without a sample since `before_ns`. */
void recorder_expire(struct recorder *r, uint64_t before_ns);

/* Calls `call` for each kept sample of that slot and epoch since from_ns, oldest first. */
void recorder_each(const struct recorder *r, uint32_t slot, uint32_t epoch, uint64_t from_ns,
		   void (*call)(void *context, const struct stack_sample *sample), void *context);

#endif
