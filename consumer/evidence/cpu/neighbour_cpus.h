/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbour_cpus.h: the CPU time of cgroups by CPU (map `neighbour_cpus`), to find the cgroups that
 * ran on the same CPUs as a session's own cgroup. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_CPU_NEIGHBOUR_CPUS_H
#define TROCAR_CONSUMER_EVIDENCE_CPU_NEIGHBOUR_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reading of the map. All zero: nothing has been counted. */
struct neighbour_cpus {
	uint64_t *ids;	/* owned; cgroup ids, ascending */
	uint64_t *ns;	/* owned; `cpus` values for each id */
	uint32_t count; /* number of ids */
	uint32_t cpus;	/* number of possible CPUs */
};

/* Reads the map `fd` on a machine with `cpus` possible CPUs. Returns 0 or -errno. */
int neighbour_cpus_read(int fd, uint32_t cpus, struct neighbour_cpus *ret_reading);

/* Removes the elements of the reading from the map. Returns false if some could not be removed. */
bool neighbour_cpus_empty(int fd, const struct neighbour_cpus *reading);

/* Subtracts an earlier reading. An element that shrank since then was reset in the meantime. */
void neighbour_cpus_subtract(struct neighbour_cpus *reading, const struct neighbour_cpus *before);

/* Returns the `cpus` times of a cgroup, by CPU; NULL if it had no time. */
const uint64_t *neighbour_cpus_find(const struct neighbour_cpus *reading, uint64_t cgroup_id);

/*
 * Clears the elements of own_ns (one per CPU) on which the session's own cgroup had less than a
 * twentieth of its time, because a thread without CPU affinity can start anywhere. Returns the
 * number of CPUs left; 0 if the cgroup had no time at all.
 */
size_t neighbour_cpus_keep(uint64_t *own_ns, uint32_t cpus);

/* Frees its members. */
void neighbour_cpus_done(struct neighbour_cpus *reading);

#endif
