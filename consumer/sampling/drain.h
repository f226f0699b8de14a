/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drain.h: reads the samples ring and distributes its samples. For each record it finds or creates
 * the process, decodes the sample (sample_decode.h, which changes nothing), reads the mappings that
 * the decoder asked for, and passes the sample to the session that runs in its slot, or else to the
 * recorder. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_DRAIN_H
#define TROCAR_CONSUMER_SAMPLING_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/kernel/counts.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/mappings_queue.h"
#include "consumer/process/process.h"
#include "consumer/process/process_mappings.h"
#include "consumer/process/process_unwind.h"
#include "consumer/sampling/recorder.h"
#include "consumer/sampling/stack_sample.h"

/* The watch in a slot now. */
struct drain_slot {
	uint64_t cgroup_id; /* 0: no watch */
	uint32_t epoch;
};

struct drain_calls {
	struct drain_slot (*slot)(void *context, uint32_t slot);
	/*
	 * Passes the sample to the session of its slot and epoch. Returns false if it belongs to
	 * none.
	 */
	bool (*session)(void *context, const struct stack_sample *sample, const struct process *p);
	/* A sample is of a cgroup below the watched one, and of process `tgid`. */
	void (*below)(void *context, uint64_t cgroup_id, uint32_t tgid);
};

/* Its owner fills it in; all pointers are borrowed. */
struct drain {
	struct pinned_maps *pins;
	struct processes *processes;
	struct process_mappings *mappings;
	struct mappings_queue *queue;
	struct process_unwind *unwind;
	struct symbols *symbols;
	struct recorder *recorder;
	const struct active_rules *active;
	struct cgroups *cgroups;
	const struct drain_calls *calls;
	void *context; /* the first argument of the calls */
	struct counts *counts;
};

/*
 * Drains the samples ring until the time slice is over (turn.h; pins->samples.cut: more is left),
 * then builds the unwind tables of the processes for which it had to read mappings. Any handler of
 * the main thread may call it: it starts and ends no session and no watch.
 */
void drain_samples(struct drain *d);

/* The permitted effort for decoding a record. */
enum drain_effort {
	DRAIN_KNOWN, /* uses the known state of its process */
	/*
	 * As DRAIN_READ, but if the mappings of one process require a walk over all tasks
	 * (mappings_queue.h), it queues the request and uses the known mappings.
	 */
	DRAIN_ASK,
	DRAIN_READ, /* reads the process's mappings if needed, and starts a table */
};

/*
 * Decodes a record of `bytes` bytes that did not come from the ring (looks.h). Returns the sample,
 * which is valid until the next one is decoded, and its process in *ret_process (NULL: the table is
 * full). Returns NULL if the record is malformed.
 */
struct stack_sample *drain_decode(struct drain *d, const struct sample *record, size_t bytes,
				  enum drain_effort effort, const struct process **ret_process);

#endif
