/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* neighbour_abi.h: the part of the ABI (abi.h) that is about the CPU time of all cgroups. */
#ifndef TROCAR_SHARED_ABI_NEIGHBOUR_ABI_H
#define TROCAR_SHARED_ABI_NEIGHBOUR_ABI_H

#include "shared/abi/abi.h"

#define NEIGHBOURS_MAX	 2048 /* cgroups with counted CPU time at a time */
#define NEIGHBOUR_LEVELS 4    /* of the hierarchy, from the root's children on */

/*
 * Value of `neighbours`; the key is a cgroup's id: the CPU time of that cgroup alone, without the
 * cgroups below it, while control.sessions is not 0. Kernel threads are in the root cgroup.
 */
struct neighbour {
	__u64 cpu_ns;	       /* sum of the periods of the ticks that hit the cgroup */
	__u32 tgid;	       /* of the last tick */
	__u32 slot;	       /* slot of the last tick; NO_SLOT: none */
	__u32 ticks;	       /* ticks that hit the cgroup */
	__u32 votes;	       /* ticks of `comm` minus ticks of other names since `comm` was set */
	char comm[COMM_BYTES]; /* a thread name; at least half of the ticks if votes is half of
				  ticks */
	char name[NEIGHBOUR_NAME_BYTES];
	__u64 above[NEIGHBOUR_LEVELS]; /* ids on its path, with its own; 0: the path is shorter */
};

#endif
