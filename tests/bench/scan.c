/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scan PIN ROUNDS: reading the pinned iterator `tasks` to its end against a walk of /proc, in
 * turns: one that reads comm alone, one that reads comm, stat and cgroup of every process. Run it
 * as the consumer's user: nothing here needs privilege.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "shared/abi/abi.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/bench/tool.h"

#define READ_BYTES 65536

static char buffer[READ_BYTES];

static size_t read_all(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t bytes = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		bytes += (size_t)n;
	return bytes;
}

/* As the consumer does (consumer/discovery/task_list.c). */
static double iterate(const char *pin, size_t *ret_found, double *ret_longest_ms)
{
	struct task_record tasks[TASKS_AT_ONCE];
	_cleanup_close_ int fd = -1;
	uint64_t start_ns = clock_mono_ns(), before_ns = start_ns, longest_ns = 0;
	size_t found = 0;
	ssize_t n;

	fd = open(pin, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		tool_die("%s", pin);
	while ((n = read(fd, tasks, sizeof(tasks))) > 0) {
		uint64_t now_ns = clock_mono_ns();

		longest_ns = MAX(longest_ns, now_ns - before_ns);
		before_ns = now_ns;
		for (size_t i = 0; i < (size_t)n / sizeof(tasks[0]); i++)
			found += tasks[i].tgid != 0;
	}
	if (n < 0)
		tool_die("%s", pin);
	*ret_found = found;
	*ret_longest_ms = (double)longest_ns / 1e6;
	return (double)(clock_mono_ns() - start_ns) / 1e6;
}

static double walk(const char *const *files, size_t *ret_processes)
{
	_cleanup_closedir_ DIR *proc = NULL;
	uint64_t start_ns = clock_mono_ns();
	const struct dirent *entry;
	size_t processes = 0;
	char path[300];

	proc = opendir("/proc");
	if (!proc)
		tool_die("/proc");
	while ((entry = readdir(proc))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		for (const char *const *file = files; *file; file++) {
			snprintf(path, sizeof(path), "/proc/%s/%s", entry->d_name, *file);
			read_all(path);
		}
		processes++;
	}
	*ret_processes = processes;
	return (double)(clock_mono_ns() - start_ns) / 1e6;
}

int main(int argc, char **argv)
{
	static const char *const comm[] = { "comm", NULL };
	static const char *const all[] = { "comm", "stat", "cgroup", NULL };
	static struct tool_values iterator, longest, comm_walk, full_walk;
	uint32_t rounds = (uint32_t)tool_number(argc, argv, 2, 1, 1000);
	size_t found = 0, processes = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		double longest_ms;

		tool_values_add(&iterator, iterate(argv[1], &found, &longest_ms));
		tool_values_add(&longest, longest_ms);
		tool_values_add(&comm_walk, walk(comm, &processes));
		tool_values_add(&full_walk, walk(all, &processes));
	}
	printf("{\"uid\":%u,\"processes\":%zu,\"matched\":%zu,\"iterator_ms\":%.3f,"
	       "\"longest_read_ms\":%.3f,"
	       "\"proc_comm_ms\":%.2f,\"proc_full_ms\":%.2f,\"rounds\":%u}\n",
	       getuid(), processes, found, tool_values_median(&iterator),
	       tool_values_median(&longest), tool_values_median(&comm_walk),
	       tool_values_median(&full_walk), rounds);
	return 0;
}
