/* SPDX-License-Identifier: BSD-2-Clause */
/* sampler_attach.h: attaches the sampler to a CPU_CLOCK event on each online CPU. */
#ifndef TROCAR_LOADER_SAMPLER_ATTACH_H
#define TROCAR_LOADER_SAMPLER_ATTACH_H

#include <stddef.h>
#include <stdint.h>

struct sampler {
	uint32_t cpu;
	int link_fd; /* owned; holds the event */
};

struct samplers {
	struct sampler *items; /* owned */
	size_t count;
};

/*
 * Opens an event of `hz` ticks a second on every online CPU, links program `prog_fd` to it and
 * enables it. Skips a CPU that goes offline in the meantime. Needs CAP_PERFMON. Source:
 * perf_event_open(2); the kernel turns the rate of CPU_CLOCK into a period. 0; -errno: nothing is
 * attached and *ret_cpu is the CPU that failed.
 */
int sampler_attach_all(int prog_fd, uint64_t hz, struct samplers *ret_samplers, uint32_t *ret_cpu);

/* Closes the links: the kernel detaches links that are not pinned. */
void sampler_attach_done(struct samplers *samplers);

#endif
