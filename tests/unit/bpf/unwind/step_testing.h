/* SPDX-License-Identifier: BSD-2-Clause */
/* step_testing.h: what step.bpf.c and its test hand to each other. */
#ifndef TROCAR_TESTS_UNIT_BPF_UNWIND_STEP_TESTING_H
#define TROCAR_TESTS_UNIT_BPF_UNWIND_STEP_TESTING_H

#include <linux/types.h>

#include "shared/abi/unwind_abi.h"

#define STEP_MODULES 16
#define STEP_FRAMES  127

struct step_module {
	__u64 start, end; /* of its executable segments */
	__u64 base;	  /* where its table's base is in memory */
	struct unwind_place place;
};

struct step_walk {
	__u32 last;  /* the module met last */
	__u32 end;   /* enum unwind_end */
	__u32 count; /* of pcs, leaf first */
	__u32 pad;
	__u64 pcs[STEP_FRAMES];
};

#endif
