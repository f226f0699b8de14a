/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_sample.h: samples as the kernel side writes them, of a process with two mappings. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_FAKE_SAMPLE_H
#define TROCAR_TESTS_UNIT_CONSUMER_FAKE_SAMPLE_H

#include "fake_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/sample_decode.h"
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

/* What the consumer makes of it; the caller frees it. */
static inline struct stack_sample *fake_decode(struct fake *f, const struct sample *s,
					       struct process **ret_process)
{
	struct stack_sample *h =
		calloc(1, sizeof(*h) + STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame));

	assert_non_null(h);
	/* What is left of the last sample must not show. */
	memset(h->frames, 0xa5, STACK_SAMPLE_FRAMES_MAX * sizeof(struct frame));
	*ret_process = sample_decode(&f->a, s, h);
	process_unwind_step(&f->a.unwind);
	return h;
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
