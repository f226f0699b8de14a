/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.h: a record of the samples ring, checked, with its user addresses turned into module and
 * file offset while the process is known. Everything after this works on struct hit.
 */
#ifndef TROCAR_CONSUMER_SAMPLE_H
#define TROCAR_CONSUMER_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/symbols/symbols.h"
#include "shared/abi.h"

struct agent;
struct process;

/* One frame. module NULL: a kernel address; &sample_unknown: an address outside every known
 * mapping. */
struct frame {
	struct module *module;
	uint64_t offset; /* file offset, or the address */
};

extern struct module sample_unknown;

/* One decoded sample; frames leaf first, kernel before user. */
struct hit {
	uint64_t time_ns;
	uint64_t start_ns;
	uint32_t tgid, tid;
	uint32_t slot, epoch, seq, cpu;
	uint32_t flags; /* enum sample_flag */
	uint16_t kernel_frames, user_frames;
	int32_t user_error;
	uint32_t user_end; /* enum unwind_end with SAMPLE_UNWOUND */
	uint32_t image;	   /* as in struct sample */
	char comm[COMM_BYTES];
	struct frame frames[];
};

/* Flags of a hit beside enum sample_flag: the chain led outside every mapping and was cut there. */
#define HIT_CUT (1u << 31)

_Static_assert(HIT_CUT > SAMPLE_FLAGS_END_, "a flag of two meanings");

#define HIT_FRAMES_MAX (2 * STACK_FRAMES)

static inline size_t hit_bytes(const struct hit *h)
{
	return sizeof(*h) + (size_t)(h->kernel_frames + h->user_frames) * sizeof(struct frame);
}

/*
 * Checks `bytes` bytes against the layout of struct sample: lengths, counts, slot and CPU within
 * what the loader made. Pure. Fuzzed (tests/fuzz/consumer/sample.c).
 */
bool sample_valid(const void *record, size_t bytes, uint32_t slots, uint32_t cpus);

/*
 * Decodes a valid record into `h` (room for HIT_FRAMES_MAX frames); makes the process known and
 * reads its mappings when that is needed. Returns the process, or NULL when the table is full.
 */
struct process *sample_decode(struct agent *a, const struct sample *sample, struct hit *h);

#endif
