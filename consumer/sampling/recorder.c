/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/macro.h"

#define CHUNK_BYTES (64u << 10)

struct recorder_chunk {
	struct recorder_chunk *next; /* newer */
	uint64_t newest_ns;
	size_t used;
	size_t samples;
	_Alignas(16) uint8_t data[CHUNK_BYTES];
};

_Static_assert(sizeof(struct stack_sample) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame) <=
		       CHUNK_BYTES,
	       "the longest sample fits a chunk");

void recorder_init(struct recorder *r, size_t max_bytes)
{
	*r = (struct recorder){ .max_bytes = MAX(max_bytes, sizeof(struct recorder_chunk)) };
}

static void drop_oldest(struct recorder *r)
{
	struct recorder_chunk *chunk = r->oldest;

	r->oldest = chunk->next;
	if (!r->oldest)
		r->newest = NULL;
	r->bytes -= sizeof(*chunk);
	free(chunk);
}

void recorder_done(struct recorder *r)
{
	while (r->oldest)
		drop_oldest(r);
}

static void note_eviction(struct recorder *r, size_t samples, uint64_t newest_ns)
{
	r->evicted += samples;
	r->evicted_ns = MAX(r->evicted_ns, newest_ns);
}

static int add_chunk(struct recorder *r)
{
	struct recorder_chunk *chunk;

	while (r->oldest && r->bytes + sizeof(*chunk) > r->max_bytes) {
		note_eviction(r, r->oldest->samples, r->oldest->newest_ns);
		drop_oldest(r);
	}
	chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	chunk->next = NULL;
	chunk->newest_ns = 0;
	chunk->used = chunk->samples = 0;
	if (r->newest)
		r->newest->next = chunk;
	else
		r->oldest = chunk;
	r->newest = chunk;
	r->bytes += sizeof(*chunk);
	return 0;
}

void recorder_add(struct recorder *r, const struct stack_sample *sample)
{
	size_t bytes = ALIGN_UP(stack_sample_bytes(sample), 16);

	if ((!r->newest || r->newest->used + bytes > CHUNK_BYTES) && add_chunk(r) < 0) {
		note_eviction(r, 1, sample->time_ns);
		return;
	}
	memcpy(r->newest->data + r->newest->used, sample, stack_sample_bytes(sample));
	r->newest->used += bytes;
	r->newest->samples++;
	/* Samples of several CPUs interleave in one drain: keep the latest time. */
	r->newest->newest_ns = MAX(r->newest->newest_ns, sample->time_ns);
}

void recorder_expire(struct recorder *r, uint64_t before_ns)
{
	while (r->oldest && r->oldest->newest_ns < before_ns)
		drop_oldest(r);
}

void recorder_each(const struct recorder *r, uint32_t slot, uint32_t epoch, uint64_t from_ns,
		   void (*call)(void *context, const struct stack_sample *sample), void *context)
{
	for (const struct recorder_chunk *c = r->oldest; c; c = c->next) {
		for (size_t at = 0; at < c->used;) {
			const struct stack_sample *sample =
				(const struct stack_sample *)(c->data + at);

			if (sample->slot == slot && sample->epoch == epoch &&
			    sample->time_ns >= from_ns)
				call(context, sample);
			at += ALIGN_UP(stack_sample_bytes(sample), 16);
		}
	}
}
