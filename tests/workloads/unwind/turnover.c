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

#define LIVE	    4
#define PIDS	    6
#define PLACES	    32 /* for as many turnovers at the same time */
#define TRIES	    2000
#define TRY_WAIT_NS 1000000
#define DEPTH_MAX   4

static pid_t first_pid;
static pid_t live[PIDS];   /* by slot: 0 is free */
static uint32_t had[PIDS]; /* how many had this pid */
static uint32_t born, again;

/* The last pids of all: others come by seldom, and two turnovers have different ones. */
static pid_t find_first_pid(void)
{
	FILE *file = fopen("/proc/sys/kernel/pid_max", "re");
	int pid_max = 0;

	if (file && fscanf(file, "%d", &pid_max) != 1)
		pid_max = 0;
	if (file)
		fclose(file);
	return pid_max > PIDS * (PLACES + 1) ? pid_max - PIDS * (1 + getpid() % PLACES) : 0;
}

/*
 * A child with the pid of `slot`; 0 in the child; -1: it is taken, or there is no right to choose.
 */
static pid_t fork_as(size_t slot)
{
	pid_t wanted = first_pid + (pid_t)slot;
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

/* Waits while others have the pids that are left. */
static int start_at_last(const char *folder, uint64_t until_ns)
{
	const struct timespec moment = { .tv_nsec = TRY_WAIT_NS };

	for (int i = 0; i < TRIES; i++) {
		if (start(folder, until_ns) == 0)
			return 0;
		nanosleep(&moment, NULL);
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
	first_pid = find_first_pid();
	if (!first_pid)
		return 8;
	srand(7);
	while (workload_now_ns() < until_ns || running) {
		while (running < LIVE && workload_now_ns() < until_ns) {
			if (start_at_last(argv[2], until_ns) < 0)
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
