/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process_mappings.h: decides when to read the mappings of a process, and which reading applies to
 * a sample. Each reading is queued (process_queue_read) for process_unwind_step, which makes a
 * table of it and then makes the kernel side take raw addresses. Main thread only.
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

/* Everything is borrowed; the caller may fill in `pins` later, before the first reading. */
void process_mappings_init(struct process_mappings *m, const struct pinned_maps *pins,
			   struct processes *processes, const struct process_targets *targets,
			   struct symbols *symbols);

/*
 * Reads the mappings of `p` unless they were read since `not_before_ns`, at most once in
 * MAP_EVERY_NS (100 ms). Returns whether `p` has mappings, of any age.
 */
bool process_mappings_read(struct process_mappings *m, struct process *p, uint64_t not_before_ns);

/*
 * Like process_mappings_read, for a sample of `time_ns` of a process that the kernel side does not
 * know as mapped: if it was mapped before, it has another image now. In that case, and for a new
 * process, it does not wait for MAP_EVERY_NS.
 */
bool process_mappings_read_image(struct process_mappings *m, struct process *p, uint64_t time_ns);

/*
 * Makes *fresh, which was read elsewhere, the mappings of `p`, unless newer ones were read in the
 * meantime. Empties *fresh.
 */
void process_mappings_take(struct process_mappings *m, struct process *p, struct mappings *fresh);

/*
 * Makes the next sample of each process that has the retired module mapped cause a new reading of
 * its mappings.
 */
void process_mappings_renew(struct process_mappings *m, const struct module *module);

/* Call when `p` got a new image at `time_ns` (CLOCK_MONOTONIC): its mappings become `before`. */
void process_mappings_exec(struct process *p, uint64_t time_ns);

/*
 * Makes the kernel side resolve the frames of the next samples, which then have the build-ids of
 * files that the consumer may not open. At most once per process in 100 ms.
 */
void process_mappings_ask_build_ids(struct process_mappings *m, struct process *p);

/*
 * Call for each sample of `p`: reads the mappings if the sample shows that the last reading is of
 * another image, or (`refused`) that the kernel side did not use p's table. If a sample has
 * build-ids, process_mappings_ask_build_ids may have been answered; the kernel side is then set
 * back to raw addresses. Returns process_mappings_at for the time of the sample.
 */
const struct mappings *process_mappings_sampled(struct process_mappings *m, struct process *p,
						const struct sample *record, bool refused);

/*
 * Returns the mappings of image `image` (struct sample) of the process at `time_ns`; empty if they
 * were not read, or if the process has had two images since.
 */
const struct mappings *process_mappings_at(const struct process *p, uint64_t time_ns,
					   uint32_t image);

#endif
