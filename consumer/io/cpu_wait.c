/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/io/cpu_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 96 /* of three decimal numbers */

int cpu_wait_open(void)
{
	int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

uint64_t cpu_wait_ns(int fd)
{
	char line[LINE_BYTES];
	const char *second;
	ssize_t n;

	if (fd < 0)
		return 0;
	n = pread(fd, line, sizeof(line) - 1, 0);
	if (n <= 0)
		return 0;
	line[n] = 0;
	second = strchr(line, ' ');
	return second ? strtoull(second, NULL, 10) : 0;
}
