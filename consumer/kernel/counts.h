/* SPDX-License-Identifier: BSD-2-Clause */
/* counts.h: counts that the consumer makes while it drains. Main thread only. */
#ifndef TROCAR_CONSUMER_KERNEL_COUNTS_H
#define TROCAR_CONSUMER_KERNEL_COUNTS_H

#include <stdint.h>

struct counts {
	uint64_t samples;	 /* samples drained */
	uint64_t bad_records;	 /* records that no BPF program of the agent writes */
	uint64_t stale_events;	 /* events of a rule that is no longer active */
	uint64_t processes_full; /* samples of processes that did not fit into the process table */
	uint64_t matches_full;	 /* matched processes that did not fit into it */
};

#endif
