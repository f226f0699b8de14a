/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drain.h: from the samples ring to who takes the samples. Of each record it finds or makes the
 * process, decodes it (sample_decode.h, which changes nothing), does what the decoder asked for,
 * and gives it to the session that runs in its slot or to the recorder. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_DRAIN_H
#define TROCAR_CONSUMER_SAMPLING_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/kernel/counts.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/process.h"
#include "consumer/process/process_mappings.h"
#include "consumer/process/process_unwind.h"
#include "consumer/sampling/recorder.h"
#include "consumer/sampling/stack_sample.h"

/* What is watched in a slot now. */
struct drain_slot {
	uint64_t cgroup_id; /* 0: nothing */
	uint32_t epoch;
};

struct drain_calls {
	struct drain_slot (*slot)(void *context, uint32_t slot);
	/* Gives it to the session of its slot and epoch. False when it belongs to none. */
	bool (*session)(void *context, const struct stack_sample *sample, const struct process *p);
};

/* Filled in by its owner; all pointers are borrowed. */
struct drain {
	struct pinned_maps *pins;
	struct processes *processes;
	struct process_mappings *mappings;
	struct process_unwind *unwind;
	struct symbols *symbols;
	struct recorder *recorder;
	const struct drain_calls *calls;
	void *context; /* of the calls */
	struct counts *counts;
};

/*
 * Drains the samples ring, then makes the tables of the processes whose mappings it had to read.
 * Safe within any handler of the main thread: it starts and ends nothing.
 */
void drain_samples(struct drain *d);

#endif
