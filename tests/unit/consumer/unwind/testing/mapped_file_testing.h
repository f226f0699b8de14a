/* SPDX-License-Identifier: BSD-2-Clause */
/* mapped_file_testing.h: bpf/mapped_file_find.h on the host: which file lies at an address is what
 * a test says.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_FILE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_FILE_TESTING_H

#include <linux/types.h>

struct task_struct;

static __u32 mapped_file_number; /* of the file, wherever one looks; 0: it cannot be said */

static __u32 mapped_file_busy; /* somebody else has the lock */

static inline __u32 mapped_file_find(struct task_struct *task, __u32 *locked, __u64 address)
{
	*locked = !mapped_file_busy;
	return mapped_file_number;
}

#endif
