/* SPDX-License-Identifier: BSD-2-Clause */
/* entry_name.c: a function of the program has the name of an entry point, NAME. */
#include <string.h>

#include "../../workloads/workload.h"

static char from[1 << 16], to[1 << 16];

NAMED void NAME(unsigned int turns)
{
	for (unsigned int i = 0; i < turns; i++) {
		memcpy(to, from, sizeof(to));
		KEEP_FRAME();
	}
}

NAMED void handles_request(void)
{
	NAME(1000);
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "entry_name SECONDS");

	while (workload_now_ns() < deadline)
		handles_request();
	return 0;
}
