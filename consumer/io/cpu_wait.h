/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu_wait.h: the time that the main thread was runnable while the kernel ran others on the CPUs:
 * the second number of /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst). It
 * distinguishes a long iteration of the loop from one that waited for a CPU.
 */
#ifndef TROCAR_CONSUMER_IO_CPU_WAIT_H
#define TROCAR_CONSUMER_IO_CPU_WAIT_H

#include <stdint.h>

/*
 * Opens the schedstat file of this process's main thread. Returns a descriptor, which the caller
 * closes, or -errno: -ENOENT on a kernel without it (CONFIG_SCHED_INFO).
 */
int cpu_wait_open(void);

/* Returns the time waited since the thread began, in ns; 0 if `fd` is negative. */
uint64_t cpu_wait_ns(int fd);

#endif
