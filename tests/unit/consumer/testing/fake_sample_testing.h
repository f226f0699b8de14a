/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_sample_testing.h: samples on their way through a fake agent, of a process with two mappings.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_FAKE_SAMPLE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_FAKE_SAMPLE_TESTING_H

#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/sampling/drain.h"
#include "tests/unit/consumer/symbols/records_testing.h"
#include "tests/unit/consumer/testing/sample_testing.h"

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

/* What the drain makes of it, by way of the ring; the caller frees it. */
static inline struct stack_sample *fake_decode(struct fake *f, const struct sample *s,
					       struct process **ret_process)
{
	static const struct drain_calls calls = { fake_no_slot, fake_take, NULL };
	struct fake_taken taken = { 0 };
	struct drain was = f->a.drain;

	f->a.drain.calls = &calls;
	f->a.drain.context = &taken;
	fake_put(&f->samples, s, fake_sample_bytes(s));
	fake_drain_samples(f);
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
