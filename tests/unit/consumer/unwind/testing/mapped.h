/* SPDX-License-Identifier: BSD-2-Clause */
/* mapped.h: bpf/mapped.h on the host: which file lies at an address is what a test says. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_H

#include <linux/types.h>

static __u32 mapped_number; /* of the file, wherever one looks; 0: it cannot be said */

static inline long unwind_mapped(__u64 address, __u32 *ret_number)
{
	*ret_number = mapped_number;
	return mapped_number ? 0 : -1;
}

#endif
