/* SPDX-License-Identifier: BSD-2-Clause */
/* alone.h: what alone.bpf.c and bench-beside share. */
#ifndef TROCAR_TESTS_BENCH_ALONE_H
#define TROCAR_TESTS_BENCH_ALONE_H

#include <linux/types.h>

#define ALONE_PROCESSES 65536 /* a power of two */

/*
 * Ticks with a user stack walked by a table, and those of a process without a table, or with
 * another one.
 */
struct alone_counts {
	__u64 walked, missed;
};

#endif
