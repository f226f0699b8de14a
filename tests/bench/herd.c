/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * herd COUNT: COUNT sleeping children, then the line "ready" and sleep until standard input ends.
 * They die with us, however we end.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/tool.h"

#define HERD_MAX 20000

static pid_t children[HERD_MAX];

static void end(size_t count)
{
	for (size_t i = 0; i < count; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

int main(int argc, char **argv)
{
	size_t count = (size_t)tool_number(argc, argv, 1, 1, HERD_MAX);
	pid_t parent = getpid();
	char byte;

	for (size_t i = 0; i < count; i++) {
		children[i] = fork();
		if (children[i] < 0) {
			int e = errno;

			end(i);
			errno = e;
			tool_die("fork %zu of %zu", i, count);
		}
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(0);
			for (;;)
				pause();
		}
	}
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	end(count);
	return 0;
}
