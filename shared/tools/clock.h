/* SPDX-License-Identifier: BSD-2-Clause */
/* clock.h: the clocks and how they are written. */
#ifndef TROCAR_SHARED_TOOLS_CLOCK_H
#define TROCAR_SHARED_TOOLS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* "2026-11-21T06:40:01.123456789Z" and its NUL. */
#define CLOCK_TEXT_BYTES 31

/* CLOCK_MONOTONIC in ns: the clock of bpf_ktime_get_ns. */
uint64_t clock_mono_ns(void);

/* CLOCK_BOOTTIME in ns: the clock of a process's start time. */
uint64_t clock_boot_ns(void);

/* CLOCK_REALTIME in ns since the epoch. */
uint64_t clock_real_ns(void);

/* CPU time of all threads of this process, in ns. */
uint64_t clock_cpu_ns(void);

/* Writes RFC 3339 UTC with nine decimals and a NUL to `text`. */
void clock_text(uint64_t real_ns, char text[CLOCK_TEXT_BYTES]);

#endif
