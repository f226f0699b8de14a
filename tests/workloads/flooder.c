/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flooder SECONDS HOW NAME: what a hostile user does to an agent that looks for NAME, as fast as it
 * goes. rename: takes NAME and drops it again. fork: children of that name that are gone at once.
 * exec: children that become this program; its file must have this name.
 */
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "workload.h"

static void rename_on(const char *name, uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		prctl(PR_SET_NAME, name, 0, 0, 0);
		prctl(PR_SET_NAME, "ebb", 0, 0, 0);
	}
}

static void fork_on(const char *program, uint64_t until_ns)
{
	while (workload_now_ns() < until_ns) {
		pid_t pid = fork();

		if (pid == 0 && program)
			execl(program, program, "1", "end", "-", (char *)NULL);
		if (pid == 0)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	uint64_t deadline_ns;

	deadline_ns = workload_deadline(argc, argv, "flooder SECONDS rename|fork|exec NAME");
	if (argc != 4)
		return 2;
	if (!strcmp(argv[2], "rename"))
		rename_on(argv[3], deadline_ns);
	if (!strcmp(argv[2], "fork")) {
		prctl(PR_SET_NAME, argv[3], 0, 0, 0);
		fork_on(NULL, deadline_ns);
	}
	if (!strcmp(argv[2], "exec"))
		fork_on(argv[0], deadline_ns);
	return 0;
}
