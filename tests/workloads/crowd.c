/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crowd SECONDS threads|processes N: N threads, or processes of this name, that sleep; prints
 * "there" once all are. crowd SECONDS births N A_SECOND: N children of this name that end at once,
 * A_SECOND of them a second (0: as fast as it goes); prints how many there were. crowd SECONDS
 * deploys N A_SECOND NAMES: the same with programs, each in a file of its own that takes the place
 * of the one NAMES before it, and that live for LIFE_MS.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "workload.h"

#define CROWD_MAX   100000u
#define STACK_BYTES (16u << 10)
#define LIFE_MS	    20u

static void *sleep_on(void *context)
{
	for (;;)
		pause();
	return context;
}

static bool make_threads(uint32_t count)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	if (pthread_attr_setstacksize(&small, STACK_BYTES))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (pthread_create(&thread, &small, sleep_on, NULL))
			return false;
	return true;
}

static bool make_processes(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return false;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			sleep_on(NULL);
		}
	}
	return true;
}

/* Puts a copy of this program, and `number` behind it, in the place of `path`. */
static bool deploy(const char *path, uint32_t number)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
	char fresh[264];
	struct stat st;
	bool fine;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	to = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	fine = from >= 0 && to >= 0 && fstat(from, &st) == 0 &&
	       sendfile(to, from, NULL, (size_t)st.st_size) == st.st_size &&
	       write(to, &number, sizeof(number)) == sizeof(number);
	close(from);
	close(to);
	return fine && rename(fresh, path) == 0;
}

/* Starts child `number`: one that ends at once, or with `names` a program that lives a little. */
static bool bear_one(const char *program, uint32_t number, uint32_t names)
{
	char path[256];
	pid_t pid;

	snprintf(path, sizeof(path), "%s.%u", program, names ? number % names : 0);
	if (names && !deploy(path, number))
		return false;
	pid = fork();
	if (pid == 0 && names)
		execl(path, path, "1", "nap", "1", (char *)NULL);
	if (pid == 0)
		_exit(0);
	if (pid > 0 && !names)
		waitpid(pid, NULL, 0);
	return pid > 0;
}

/* Returns how many children there were until the deadline. */
static uint32_t bear(const char *program, uint32_t count, uint32_t a_second, uint32_t names,
		     uint64_t until_ns)
{
	uint64_t began_ns = workload_now_ns(), now_ns = began_ns, due_ns;
	uint32_t born = 0;

	while (born < count && now_ns < until_ns && bear_one(program, born, names)) {
		born++;
		due_ns = a_second ? began_ns + born * 1000000000ull / a_second : 0;
		now_ns = workload_now_ns();
		if (due_ns > now_ns)
			workload_rest(due_ns - now_ns);
	}
	return born;
}

int main(int argc, char **argv)
{
	uint32_t count, a_second, names;
	uint64_t deadline_ns;

	deadline_ns = workload_deadline(
		argc, argv, "crowd SECONDS threads|processes|births|deploys N [A_SECOND [NAMES]]");
	count = workload_number(argc, argv, 3, 1, 1, CROWD_MAX);
	a_second = workload_number(argc, argv, 4, 0, 0, CROWD_MAX);
	names = workload_number(argc, argv, 5, 0, 1, CROWD_MAX);
	if (argc == (names ? 6 : 5) && !strcmp(argv[2], names ? "deploys" : "births")) {
		signal(SIGCHLD, names ? SIG_IGN : SIG_DFL);
		printf("%u\n", bear(argv[0], count, a_second, names, deadline_ns));
		return 0;
	}
	if (argc != 4)
		return 2;
	if (!strcmp(argv[2], "nap")) {
		workload_rest(LIFE_MS * 1000000ull);
		return 0;
	}
	if (!strcmp(argv[2], "threads") ? !make_threads(count) : !make_processes(count)) {
		fprintf(stderr, "crowd: %s\n", strerror(errno));
		return 1;
	}
	puts("there");
	fflush(stdout);
	while (workload_now_ns() < deadline_ns)
		workload_rest(deadline_ns - workload_now_ns());
	return 0;
}
