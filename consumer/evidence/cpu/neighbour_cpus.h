/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbour_cpus.h: the CPU time of cgroups by CPU (map `neighbour_cpus`), to find those that had
 * the very CPUs that a session's own cgroup ran on. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_NEIGHBOUR_CPUS_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_NEIGHBOUR_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reading of the map. All zero: nothing has been counted. */
struct neighbour_cpus {
	uint64_t *ids;	/* owned; of cgroups, ascending */
	uint64_t *ns;	/* owned; `cpus` for each of ids */
	uint32_t count; /* of ids */
	uint32_t cpus;	/* possible ones */
};

/* Reads the map `fd` of a machine with so many possible CPUs. 0 or -errno. */
int neighbour_cpus_read(int fd, uint32_t cpus, struct neighbour_cpus *ret_reading);

/* Removes the elements of the reading from the map. False when some of it could not be removed. */
bool neighbour_cpus_empty(int fd, const struct neighbour_cpus *reading);

/* Subtracts an earlier reading. An element that is smaller than then was begun anew. */
void neighbour_cpus_subtract(struct neighbour_cpus *reading, const struct neighbour_cpus *before);

/* Returns the times of a cgroup by CPU, `cpus` of them; NULL: it had none. */
const uint64_t *neighbour_cpus_find(const struct neighbour_cpus *reading, uint64_t cgroup_id);

/*
 * Clears the elements of own_ns (one for each CPU) on which the own cgroup had less than a
 * twentieth of its time: a thread that is not bound starts anywhere. Returns how many are left; 0
 * when it had no time at all.
 */
size_t neighbour_cpus_keep(uint64_t *own_ns, uint32_t cpus);

/* Frees its members. */
void neighbour_cpus_done(struct neighbour_cpus *reading);

#endif
