/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu_wait.h: how long the main thread was ready to run and the kernel ran others on the CPUs: the
 * second number of /proc/PID/schedstat (Documentation/scheduler/sched-stats.rst). It distinguishes
 * a long turn from one that waited for a CPU.
 */
#ifndef TROCAR_CONSUMER_IO_CPU_WAIT_H
#define TROCAR_CONSUMER_IO_CPU_WAIT_H

#include <stdint.h>

/*
 * Opens the figures of this process's main thread. A descriptor, which the caller closes, or
 * -errno: -ENOENT on a kernel without them (CONFIG_SCHED_INFO).
 */
int cpu_wait_open(void);

/* Returns the time since the thread began, in ns; 0 for a descriptor below 0. */
uint64_t cpu_wait_ns(int fd);

#endif
