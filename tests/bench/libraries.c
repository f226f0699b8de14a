/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libraries SECONDS FILE...: opens every shared library and spins in each in turn, so that samples
 * meet all of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "shared/tools/clock.h"
#include "tests/bench/tool.h"

#define TURNS 200000u

int main(int argc, char **argv)
{
	uint64_t end_ns = clock_mono_ns() + tool_number(argc, argv, 1, 1, 600) * 1000000000u;
	uint64_t (**spin)(uint64_t) = calloc((size_t)argc, sizeof(*spin));

	if (!spin)
		tool_die("memory");
	errno = 0;
	for (int i = 2; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);

		if (!library)
			tool_die("%s: %s", argv[i], dlerror());
		*(void **)&spin[i] = dlsym(library, "spin_in_library");
		if (!spin[i])
			tool_die("%s: no spin_in_library", argv[i]);
	}
	printf("ready\n");
	fflush(stdout);
	while (clock_mono_ns() < end_ns)
		for (int i = 2; i < argc; i++)
			spin[i](TURNS);
	free(spin);
	return 0;
}
