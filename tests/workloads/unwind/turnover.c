/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turnover SECONDS FOLDER: keeps some of the turnover's programs running in children that all get
 * one of a few pids, each used again as soon as its process is gone. Prints how many were born, and
 * how many of them under a pid that another had had.
 */
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "turnover.h"

#define LIVE	  4
#define PIDS	  6
#define FIRST_PID 32000 /* below the default of kernel.pid_max */
#define DEPTH_MAX 4

static pid_t live[PIDS];   /* by slot: 0 is free */
static uint32_t had[PIDS]; /* how many had this pid */
static uint32_t born, again;

/* A child with the pid of `slot`; 0 in the child; -1: somebody has it, or no right to choose. */
static pid_t fork_as(size_t slot)
{
	pid_t wanted = FIRST_PID + (pid_t)slot;
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uintptr_t)&wanted,
				   .set_tid_size = 1 };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void become(const char *folder, uint64_t until_ns)
{
	char path[512], until[32], seed[16], depth[16];
	char *words[] = { path, (char *)folder, until, seed, depth, NULL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/program_%c", folder, 'a' + rand() % TURNOVER_LETTERS);
	snprintf(until, sizeof(until), "%llu", (unsigned long long)until_ns);
	snprintf(seed, sizeof(seed), "%d", rand() % 65536);
	snprintf(depth, sizeof(depth), "%d", rand() % DEPTH_MAX);
	personality(rand() % 3 ? ADDR_NO_RANDOMIZE : 0);
	execv(path, words);
	_exit(5);
}

static int start(const char *folder, uint64_t until_ns)
{
	for (size_t i = 0; i < PIDS; i++) {
		pid_t pid = live[i] ? -1 : fork_as(i);

		if (pid < 0)
			continue;
		if (pid == 0)
			become(folder, until_ns);
		rand(); /* the child's were copies */
		live[i] = pid;
		again += had[i]++ > 0;
		born++;
		return 0;
	}
	return -1;
}

static void bury(pid_t pid)
{
	for (size_t i = 0; i < PIDS; i++)
		if (live[i] == pid)
			live[i] = 0;
}

int main(int argc, char **argv)
{
	uint64_t until_ns = workload_deadline(argc, argv, "turnover SECONDS FOLDER");
	uint32_t running = 0;
	int status;

	if (argc != 3)
		return 2;
	srand(7);
	while (workload_now_ns() < until_ns || running) {
		while (running < LIVE && workload_now_ns() < until_ns) {
			if (start(argv[2], until_ns) < 0)
				return 6;
			running++;
		}
		bury(wait(&status));
		running--;
		if (status)
			return 7;
	}
	printf("%u %u\n", born, again);
	return 0;
}
