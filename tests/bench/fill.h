/* SPDX-License-Identifier: BSD-2-Clause */
/* fill.h: what the filler of bench.bpf.c and its caller share. */
#ifndef TROCAR_TESTS_BENCH_FILL_H
#define TROCAR_TESTS_BENCH_FILL_H

#include <linux/types.h>

#define FILL_RING_BYTES	  (4096 * 1024) /* the samples ring's default */
#define FILL_RECORD_BYTES 512

/* Context of the program `fill`: writes `count` records of `bytes` bytes, or as many as fit. */
struct fill_args {
	__u32 bytes;
	__u32 count;
	__u32 written; /* out */
	__u32 pad;
};

struct fill_record {
	__u8 data[FILL_RECORD_BYTES];
};

#endif
