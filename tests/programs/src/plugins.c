/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plugins.c: four plug-ins, each opened, called for a while and closed again, in turn.
 */
#include <dlfcn.h>

#include "../../workloads/workload.h"

#define PLUGINS 4
#define TURN_NS 300000000ull

NAMED void calls_plugin(void (*work)(void))
{
	uint64_t end = workload_now_ns() + TURN_NS;

	while (workload_now_ns() < end)
		work();
}

int main(int argc, char **argv)
{
	uint64_t deadline = workload_deadline(argc, argv, "plugins SECONDS FOLDER");

	if (argc < 3)
		return 2;
	for (unsigned int i = 0; workload_now_ns() < deadline; i++) {
		void *plugin, (*work)(void);
		char path[4096];

		snprintf(path, sizeof(path), "%s/plugin%u.so", argv[2], i % PLUGINS);
		plugin = dlopen(path, RTLD_NOW);
		if (!plugin || !(work = dlsym(plugin, "plugin_work")))
			return 1;
		calls_plugin((void (*)(void))work);
		dlclose(plugin);
	}
	return 0;
}
