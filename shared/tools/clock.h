/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h: reads the clocks and writes times as text. */
#ifndef TROCAR_SHARED_TOOLS_CLOCK_H
#define TROCAR_SHARED_TOOLS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Length of "2026-11-21T06:40:01.123456789Z" with its NUL. */
#define CLOCK_TEXT_BYTES 31

/* Returns CLOCK_MONOTONIC in ns, the clock of bpf_ktime_get_ns. */
uint64_t clock_mono_ns(void);

/*
 * Returns CLOCK_MONOTONIC_COARSE in ns: the same clock at the kernel's last timer tick (1 to 10 ms
 * old), at a cost of a few ns. For time budgets that are checked after each record.
 */
uint64_t clock_coarse_ns(void);

/* Returns CLOCK_BOOTTIME in ns, the clock of a process's start time. */
uint64_t clock_boot_ns(void);

/* Returns CLOCK_REALTIME in ns since the epoch. */
uint64_t clock_real_ns(void);

/* Returns the CPU time of all threads of this process in ns. */
uint64_t clock_cpu_ns(void);

/* Returns the CPU time of the calling thread in ns. */
uint64_t clock_thread_ns(void);

/* Writes the time as RFC 3339 in UTC with nine decimals and a NUL to `text`. */
void clock_text(uint64_t real_ns, char text[CLOCK_TEXT_BYTES]);

#endif
