/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the samples ring. What sample_record_valid lets through can be read to the last byte
 * that the decoder reads; the first two bytes stand for the loader's objects: slots and CPUs.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/sampling/sample_record.h"
#include "consumer/sampling/stack_sample.h"
#include "shared/tools/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t sum_words(const uint64_t *words, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += words[i];
	return sum;
}

static uint64_t sum_build_ids(const struct frame_build_id *ids, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		sum += (uint32_t)ids[i].status + ids[i].offset_or_ip;
		for (size_t k = 0; k < sizeof(ids[i].build_id); k++)
			sum += ids[i].build_id[k];
	}
	return sum;
}

static uint64_t read_all(const struct sample *s)
{
	const struct frame_build_id *ids = sample_record_ids(s), *leaf = sample_record_leaf_id(s);
	const uint64_t *addresses = sample_record_addresses(s);
	uint64_t sum = sum_words(sample_record_kernel(s), s->kernel_frames);

	if (ids)
		sum += sum_build_ids(ids, s->user_frames);
	if (addresses)
		sum += sum_words(addresses, s->user_frames);
	if (leaf)
		sum += sum_build_ids(leaf, 1);
	if (sample_record_waker(s))
		sum += sample_record_waker(s)->weight_ns + sample_record_waker(s)->lock.kind;
	if (sample_record_runtime(s))
		sum += sum_words((const uint64_t *)(sample_record_runtime(s) + 1),
				 sample_record_runtime(s)->frames);
	return sum + s->time_ns + s->start_ns + s->seq + s->tid + s->tgid + (uint8_t)s->comm[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_free_ struct sample *record = NULL;
	uint64_t sum;
	uint32_t slots, cpus;

	if (bytes < 2)
		return 0;
	slots = data[0];
	cpus = data[1];
	bytes -= 2;
	/* Aligned and of the exact size, as the ring hands it out. */
	record = malloc(bytes ? bytes : 1);
	if (!record)
		return 0;
	memcpy(record, data + 2, bytes);
	if (!sample_record_valid(record, bytes, slots, cpus))
		return 0;
	if (record->slot >= slots || record->cpu >= cpus ||
	    record->kernel_frames + record->user_frames > STACK_SAMPLE_FRAMES_MAX ||
	    (record->call > INT32_MAX && record->call < ACCOUNT_CALL_COMPAT))
		abort();
	sum = read_all(record);
	/* Nothing is left out as unused. */
	__asm__ volatile("" : : "r"(sum));
	return 0;
}
