/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/tool.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shared/files/cgroupfs.h"
#include "shared/tools/parse.h"

void tool_die(const char *format, ...)
{
	int e = errno;
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, e ? ": %s\n" : "\n", strerror(e));
	exit(1);
}

uint64_t tool_number(int argc, char **argv, int i, uint64_t min, uint64_t max)
{
	uint64_t number;

	if (i < argc && parse_u64(argv[i], min, max, &number) == 0)
		return number;
	fprintf(stderr, "%s: argument %d: a number from %llu to %llu is needed\n", argv[0], i,
		(unsigned long long)min, (unsigned long long)max);
	exit(2);
}

void tool_sleep_ms(uint32_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

struct tool_cost tool_cost(int program_fd)
{
	struct bpf_prog_info info = {};
	__u32 bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(program_fd, &info, &bytes) < 0)
		tool_die("bpf_obj_get_info_by_fd");
	return (struct tool_cost){ .ns = info.run_time_ns, .runs = info.run_cnt };
}

bool tool_has_function(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool found = btf && btf__find_by_name_kind(btf, name, BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return found;
}

struct tool_cost tool_cost_since(int program_fd, struct tool_cost before)
{
	struct tool_cost now = tool_cost(program_fd);

	return (struct tool_cost){ .ns = now.ns - before.ns, .runs = now.runs - before.runs };
}

double tool_cost_each(struct tool_cost cost)
{
	return cost.runs ? (double)cost.ns / (double)cost.runs : -1;
}

void tool_values_add(struct tool_values *v, double value)
{
	if (value < 0)
		return;
	errno = 0;
	if (v->count == TOOL_VALUES_MAX)
		tool_die("more than %d values", TOOL_VALUES_MAX);
	v->items[v->count++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double tool_values_median(struct tool_values *v)
{
	if (!v->count)
		return -1;
	qsort(v->items, v->count, sizeof(*v->items), by_value);
	if (v->count % 2)
		return v->items[v->count / 2];
	return (v->items[v->count / 2 - 1] + v->items[v->count / 2]) / 2;
}

uint64_t tool_group_make(char *dir)
{
	enum cgroup_mode mode;
	struct stat st;
	size_t mount;
	int r;

	r = cgroupfs_find_here(dir, 4096, &mode);
	if (r < 0) {
		errno = -r;
		tool_die("no cgroup2 mount");
	}
	mount = strlen(dir);
	snprintf(dir + mount, 4096 - mount, "/trocar-bench-%d", getpid());
	if (mkdir(dir, 0755) < 0 || stat(dir, &st) < 0)
		tool_die("%s", dir);
	return st.st_ino;
}

void tool_group_remove(const char *dir)
{
	for (int i = 0; i < 100 && rmdir(dir) < 0 && errno == EBUSY; i++)
		tool_sleep_ms(10);
}

void tool_group_join(const char *dir)
{
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0\n", 2) != 2)
		tool_die("%s", path);
	close(fd);
}

int tool_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

int tool_tick_open(int cpu, uint32_t hz)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = 1,
					.disabled = 1,
					.sample_freq = hz };
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}
