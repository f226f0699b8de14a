/* SPDX-License-Identifier: BSD-2-Clause */
/* counts.h: what the consumer counts while it drains. Main thread only. */
#ifndef TROCAR_CONSUMER_KERNEL_COUNTS_H
#define TROCAR_CONSUMER_KERNEL_COUNTS_H

#include <stdint.h>

struct counts {
	uint64_t samples;	 /* samples drained */
	uint64_t bad_records;	 /* records that no BPF program of the agent writes */
	uint64_t stale_events;	 /* events of a rule that is no longer in force */
	uint64_t processes_full; /* samples of processes for which the process table had no room */
	uint64_t matches_full;	 /* matched processes for which it had no room */
};

#endif
