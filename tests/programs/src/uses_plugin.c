/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uses_plugin.c: a program that is linked with a library, plugin.c, and calls it all the time.
 */
#include "../../workloads/workload.h"

void plugin_work(void);

NAMED void calls_library(void)
{
	plugin_work();
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "uses_plugin SECONDS");

	while (workload_now_ns() < deadline)
		calls_library();
	return 0;
}
