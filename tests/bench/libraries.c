/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libraries SECONDS FILE...: opens every shared library and spins in each in turn, so that samples
 * meet all of them. It reads /dev/zero in between, so that the first session meets the kernel's
 * symbols as well and the second one is as warm as it can be.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shared/tools/clock.h"
#include "tests/bench/tool.h"

#define TURNS	   200000u
#define ZERO_BYTES (512u << 10)

static void read_zeros(int fd)
{
	static char buffer[ZERO_BYTES];

	if (read(fd, buffer, sizeof(buffer)) != (ssize_t)sizeof(buffer))
		tool_die("/dev/zero: %m");
}

int main(int argc, char **argv)
{
	int zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	uint64_t end_ns = clock_mono_ns() + tool_number(argc, argv, 1, 1, 600) * 1000000000u;
	uint64_t (**spin)(uint64_t) = calloc((size_t)argc, sizeof(*spin));

	if (zero_fd < 0)
		tool_die("/dev/zero: %m");
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
		for (int i = 2; i < argc; i++) {
			spin[i](TURNS);
			read_zeros(zero_fd);
		}
	free(spin);
	close(zero_fd);
	return 0;
}
