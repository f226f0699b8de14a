/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spawner PROGRAM PAUSE_US: executes PROGRAM again and again until standard input ends, then prints
 * how often.
 */
#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/tool.h"

int main(int argc, char **argv)
{
	uint32_t pause_us = (uint32_t)tool_number(argc, argv, 2, 0, 1000000);
	char *const words[] = { argv[1], NULL };
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned long execs = 0;
	pid_t pid;

	while (poll(&in, 1, 0) == 0) {
		errno = posix_spawn(&pid, argv[1], NULL, NULL, words, environ);
		if (errno || waitpid(pid, NULL, 0) < 0)
			tool_die("%s", argv[1]);
		execs++;
		if (pause_us)
			usleep(pause_us);
	}
	printf("%lu\n", execs);
	return 0;
}
