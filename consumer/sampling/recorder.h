/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recorder.h: the seconds before a trigger: decoded samples of all watches in time order, in chunks
 * that are freed when they are older than any rule asks for, and within a bound. Main thread only.
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
	size_t max_bytes; /* bound */
	uint64_t evicted; /* samples that went early because of the bound */
};

void recorder_init(struct recorder *r, size_t max_bytes);
void recorder_done(struct recorder *r);

/* Keeps a copy of `sample`. 0 or -ENOMEM. */
int recorder_add(struct recorder *r, const struct stack_sample *sample);

/* Frees the chunks whose newest sample is older than `before_ns`. */
void recorder_expire(struct recorder *r, uint64_t before_ns);

/* Calls `call` for each kept sample of that slot and epoch from from_ns on, oldest first. */
void recorder_each(const struct recorder *r, uint32_t slot, uint32_t epoch, uint64_t from_ns,
		   void (*call)(void *context, const struct stack_sample *sample), void *context);

#endif
