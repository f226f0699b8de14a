/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_sample.h: samples as the kernel side writes them, of a process with two mappings. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_FAKE_SAMPLE_H
#define TROCAR_TESTS_UNIT_CONSUMER_FAKE_SAMPLE_H

#include "fake_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/drain.h"
#include "consumer/sample_record.h"
#include "shared/abi.h"
#include "shared/clock.h"
#include "tests/unit/symbols/records_file.h"

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
	size_t bytes = sizeof(struct sample) + kernel * sizeof(uint64_t) + user * each;
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

/* Where a sample ends up that the drain has decoded. */
struct fake_taken {
	struct stack_sample *sample; /* a copy, owned */
	const struct process *process;
};

static inline struct drain_slot fake_no_slot(void *context, uint32_t slot)
{
	return (struct drain_slot){ 0 };
}

static inline bool fake_take(void *context, const struct stack_sample *sample,
			     const struct process *p)
{
	struct fake_taken *taken = context;

	assert_null(taken->sample);
	taken->process = p;
	taken->sample = malloc(stack_sample_bytes(sample));
	assert_non_null(taken->sample);
	memcpy(taken->sample, sample, stack_sample_bytes(sample));
	return true;
}

static inline size_t fake_sample_bytes(const struct sample *s)
{
	const struct frame_build_id *ids = sample_record_ids(s), *leaf = sample_record_leaf_id(s);
	const uint64_t *addresses = sample_record_addresses(s);
	const void *end =
		leaf ? (const void *)(leaf + 1) : (const void *)(addresses + s->user_frames);

	if (!leaf && !addresses)
		end = ids + s->user_frames;
	return (size_t)((const uint8_t *)end - (const uint8_t *)s);
}

/* What the drain makes of it, by way of the ring; the caller frees it. */
static inline struct stack_sample *fake_decode(struct fake *f, const struct sample *s,
					       struct process **ret_process)
{
	static const struct drain_calls calls = { fake_no_slot, fake_take };
	struct fake_taken taken = { 0 };
	struct drain was = f->a.drain;

	f->a.drain.calls = &calls;
	f->a.drain.context = &taken;
	fake_put(&f->samples, s, fake_sample_bytes(s));
	drain_samples(&f->a.drain);
	f->a.drain.calls = was.calls;
	f->a.drain.context = was.context;
	assert_non_null(taken.sample);
	*ret_process = taken.process ? process_find(&f->a.processes, s->tgid, s->start_ns) : NULL;
	assert_ptr_equal(*ret_process, taken.process);
	return taken.sample;
}

/* Two mappings of the process in the file that stands for the iterator: 64 KiB of a program at
 * 0x10000, of a library at 0x40000, each from offset 0x1000 on. */
static inline void fake_mappings(struct fake *f)
{
	FILE *file = fopen(f->vmas, "we");
	struct mapping_record r = { .start_ns = FAKE_START,
				    .tgid = FAKE_TGID,
				    .start = 0x10000,
				    .end = 0x20000,
				    .file_offset = 0x1000,
				    .inode = 7,
				    .device = 1,
				    .flags = MAPPING_IS_EXE };

	assert_non_null(file);
	records_file_mapping(file, r, "/nonexistent/app");
	r.start = 0x40000;
	r.end = 0x50000;
	r.inode = 8;
	r.flags = 0;
	records_file_mapping(file, r, "/nonexistent/lib.so");
	fclose(file);
}

#endif
