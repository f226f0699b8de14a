/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* neighbour_abi.h: the part of the ABI (abi.h) that is about which cgroups had the CPUs. */
#ifndef TROCAR_SHARED_ABI_NEIGHBOUR_ABI_H
#define TROCAR_SHARED_ABI_NEIGHBOUR_ABI_H

#include "shared/abi/abi.h"

#define NEIGHBOURS_MAX	 2048 /* cgroups with CPU time that is counted at a time */
#define NEIGHBOUR_LEVELS 4    /* of the hierarchy, from the root's children on */

/*
 * Value of `neighbours`; the key is a cgroup's id: the CPU time of that very cgroup, without those
 * below it, while control.sessions is not 0. Kernel threads are in the root cgroup.
 */
struct neighbour {
	__u64 cpu_ns;	       /* sum of the periods of the ticks that met it */
	__u32 tgid;	       /* of the last tick */
	__u32 slot;	       /* to which the last tick belonged; NO_SLOT: none */
	__u32 ticks;	       /* that met it */
	__u32 votes;	       /* ticks for `comm`, less those for other names since it stands */
	char comm[COMM_BYTES]; /* of threads; of half of the ticks where votes is half of ticks */
	char name[NEIGHBOUR_NAME_BYTES];
	__u64 above[NEIGHBOUR_LEVELS]; /* ids on its path, its own too; 0: the path is shorter */
};

#endif
