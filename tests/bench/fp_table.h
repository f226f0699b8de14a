/* SPDX-License-Identifier: BSD-2-Clause */
/* fp_table.h: a table for a process with frame pointers, as the consumer makes it. */
#ifndef TROCAR_TESTS_BENCH_FP_TABLE_H
#define TROCAR_TESTS_BENCH_FP_TABLE_H

#include <stdint.h>

#include "shared/abi/abi.h"

struct trocar;

/* Has the kernel side fill table `number` with the executable ranges of a target, and publishes it.
 */
void fp_table_make(struct trocar *skel, const struct process_key *key, uint32_t number);

#endif
