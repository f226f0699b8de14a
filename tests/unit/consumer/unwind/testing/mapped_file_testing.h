/* SPDX-License-Identifier: BSD-2-Clause */
/* mapped_file_testing.h: bpf/mapped_file.h on the host: which file lies at an address is what a
 * test says.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_FILE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_FILE_TESTING_H

#include <linux/types.h>

static __u32 mapped_file_number; /* of the file, wherever one looks; 0: it cannot be said */

static inline long mapped_file_find(__u64 address, __u32 *ret_number)
{
	*ret_number = mapped_file_number;
	return mapped_file_number ? 0 : -1;
}

#endif
