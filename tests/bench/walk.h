/* SPDX-License-Identifier: BSD-2-Clause */
/* walk.h: what bench-walks and its programs share. */
#ifndef TROCAR_TESTS_BENCH_WALK_H
#define TROCAR_TESTS_BENCH_WALK_H

#include <linux/types.h>

enum walk_kind {
	WALK_NONE,     /* finds the process of the tick, and no more: the floor */
	WALK_ROWS,     /* by rows, as the sampler does it */
	WALK_POINTERS, /* bpf_get_stack, addresses */
	WALK_IDS,      /* bpf_get_stack, build-ids */
	WALK_KERNEL,   /* the kernel's stack, where the tick met it, by remembered rows */
	WALK_ASKED,    /* the same by bpf_get_stack */
	WALK_KINDS
};

/* Whose stacks one of them takes. Written by user space. */
struct walk_want {
	__u32 tgid;
	__u32 table; /* its number */
};

/* What one of them took. */
struct walk_count {
	__u64 hits, frames;
	__u64 complete; /* by rows only; of the kernel's stacks those that could be walked */
};

#endif
