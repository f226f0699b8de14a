/* SPDX-License-Identifier: BSD-2-Clause */
/* counts.h: what the consumer itself counts while it drains. Main thread only. */
#ifndef TROCAR_CONSUMER_KERNEL_COUNTS_H
#define TROCAR_CONSUMER_KERNEL_COUNTS_H

#include <stdint.h>

struct counts {
	uint64_t samples;	 /* drained */
	uint64_t bad_records;	 /* that no program of ours writes */
	uint64_t stale_events;	 /* events of rules that are gone */
	uint64_t processes_full; /* samples of processes that the table had no room for */
};

#endif
