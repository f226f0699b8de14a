/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pingpong SECONDS: two processes on one CPU throw a byte through two pipes; every 50 ms a line
 * "MONO_NS ROUNDS". A service that does nothing but switch: whatever a profiler costs shows here.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shared/tools/clock.h"
#include "tests/bench/tool.h"

#define REPORT_NS 50000000ull

static void answer(int in, int out)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(in, &byte, 1) == 1 && write(out, &byte, 1) == 1)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	uint64_t seconds = tool_number(argc, argv, 1, 1, 600), rounds = 0, now_ns, end_ns, next_ns;
	int there[2], back[2];
	char byte = 1;
	pid_t pid;

	tool_pin(0);
	if (pipe(there) < 0 || pipe(back) < 0)
		tool_die("pipe");
	pid = fork();
	if (pid < 0)
		tool_die("fork");
	if (pid == 0)
		answer(there[0], back[1]);
	now_ns = clock_mono_ns();
	end_ns = now_ns + seconds * 1000000000u;
	next_ns = now_ns + REPORT_NS;
	while (now_ns < end_ns) {
		for (int i = 0; i < 64; i++)
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				tool_die("pipe");
		rounds += 64;
		now_ns = clock_mono_ns();
		if (now_ns < next_ns)
			continue;
		printf("%llu %llu\n", (unsigned long long)now_ns, (unsigned long long)rounds);
		fflush(stdout);
		next_ns = now_ns + REPORT_NS;
	}
	kill(pid, SIGKILL);
	return 0;
}
