/* SPDX-License-Identifier: BSD-2-Clause */
/* host.h: the machine's values in every line, read once before the lock-down. */
#ifndef TROCAR_CONSUMER_OUTPUT_HOST_H
#define TROCAR_CONSUMER_OUTPUT_HOST_H

#include "shared/files/cgroupfs.h"

struct host {
	char name[65];	    /* nodename of uname(2) */
	char boot_id[37];   /* /proc/sys/kernel/random/boot_id */
	char kernel[65];    /* release of uname(2) */
	char cgroup2[4096]; /* mount point, "" without one */
	enum cgroup_mode cgroup_mode;
	unsigned int cpus; /* CPUs online */
	/* Why the agent does not see all processes or all cgroups (namespaces.h); NULL: it does. */
	const char *hidden_processes, *hidden_cgroups;
	/*
	 * Why /proc hides other users' processes from the agent, and why its clocks differ; NULL:
	 * neither.
	 */
	const char *hidden_proc, *shifted_clocks;
};

/*
 * Reads all members. Without cgroup2 returns -ENOENT, because nothing can be watched; cgroup_mode
 * is still set. Returns 0 or -errno.
 */
int host_read(struct host *ret_host);

#endif
