/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_mappings.h: when the mappings of a process are read, and which of them a sample is looked
 * up in. What was read is queued for process_unwind_step (process_queue_read), which makes a table
 * of it and then has the kernel side take raw addresses. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_PROCESS_MAPPINGS_H
#define TROCAR_CONSUMER_PROCESS_PROCESS_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/process/process.h"
#include "consumer/process/process_targets.h"
#include "consumer/symbols/symbols.h"

/* All pointers are borrowed. */
struct process_mappings {
	const struct pinned_maps *pins;
	struct processes *processes;
	const struct process_targets *targets;
	struct symbols *symbols;
};

/* Everything is borrowed; `pins` may be filled in later, before the first reading. */
void process_mappings_init(struct process_mappings *m, const struct pinned_maps *pins,
			   struct processes *processes, const struct process_targets *targets,
			   struct symbols *symbols);

/*
 * Reads the mappings of `p` unless that was done since `not_before_ns`, at most once in 100 ms.
 * True when there are any, whenever they were read.
 */
bool process_mappings_read(struct process_mappings *m, struct process *p, uint64_t not_before_ns);

/*
 * The same at a sample of `time_ns` for which the kernel side does not know the process as mapped:
 * where it was, it has another image since. That does not wait for the 100 ms; nor does what is
 * new.
 */
bool process_mappings_read_image(struct process_mappings *m, struct process *p, uint64_t time_ns);

/* A new image since `time_ns` (CLOCK_MONOTONIC): what is mapped now becomes `before`. */
void process_mappings_exec(struct process *p, uint64_t time_ns);

/*
 * Has the kernel side resolve the frames of the next samples: they tell the build-ids of files that
 * this process may not open. At most once per process and 100 ms.
 */
void process_mappings_ask_build_ids(struct process_mappings *m, struct process *p);

/*
 * A sample of `p` came: reads its mappings where the sample says that what was read is not of its
 * image, or (`refused`) that its table is not. One with build-ids may be the answer to
 * process_mappings_ask_build_ids: then raw addresses are taken again. Returns
 * process_mappings_at its time.
 */
const struct mappings *process_mappings_sampled(struct process_mappings *m, struct process *p,
						const struct sample *record, bool refused);

/*
 * The mappings of image `image` (struct sample), which the process was at `time_ns`; empty when
 * they were not read, or are those of two images ago.
 */
const struct mappings *process_mappings_at(const struct process *p, uint64_t time_ns,
					   uint32_t image);

#endif
