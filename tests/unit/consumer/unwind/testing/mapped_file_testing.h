/* SPDX-License-Identifier: BSD-2-Clause */
/* mapped_file_testing.h: bpf/mappings/mapped_file_find.h on the host: a test sets the mapping. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_FILE_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_UNWIND_TESTING_MAPPED_FILE_TESTING_H

#include <linux/types.h>

struct mapped_file_found {
	__u64 start, end;
	__u64 number;
};

static struct mapped_file_found mapped_file_there; /* at every address; end 0: nothing is found */
static __u32 mapped_file_searches;		   /* ever */

static inline int mapped_file_find(__u64 mm, __u64 address, struct mapped_file_found *found)
{
	mapped_file_searches++;
	*found = mapped_file_there;
	return found->end > 0;
}

#endif
