/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool.h: what the bench's programs share. Each prints one JSON object on stdout, with numbers as
 * measured, and ends with status 1 and a reason on stderr when it cannot measure. They are tools of
 * the bench: a failed surrounding ends them.
 */
#ifndef TROCAR_TESTS_BENCH_TOOL_H
#define TROCAR_TESTS_BENCH_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TOOL_VALUES_MAX 4096

/* Says why on stderr, with errno's text unless it is 0, and ends with status 1. */
_Noreturn void tool_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Argument `i` as a whole number within [min, max]; ends with status 2 otherwise. */
uint64_t tool_number(int argc, char **argv, int i, uint64_t min, uint64_t max);

void tool_sleep_ms(uint32_t ms);

/* What the kernel counted of a program while statistics are on. */
struct tool_cost {
	uint64_t ns;
	uint64_t runs;
};

/* Returns whether the running kernel's BTF has a function of that name. */
bool tool_has_function(const char *name);

struct tool_cost tool_cost(int program_fd);
struct tool_cost tool_cost_since(int program_fd, struct tool_cost before);

/* ns per run, or -1 when it did not run. */
double tool_cost_each(struct tool_cost cost);

/* Measured values and their median. */
struct tool_values {
	double items[TOOL_VALUES_MAX];
	size_t count;
};

/* Values beyond TOOL_VALUES_MAX end the tool. A negative value means "not measured": left out. */
void tool_values_add(struct tool_values *v, double value);

/* -1 when there is none. */
double tool_values_median(struct tool_values *v);

/* Makes a cgroup2 directory trocar-bench-PID; its path goes to `dir` (4096 bytes), its id back. */
uint64_t tool_group_make(char *dir);

/* Removes it, waiting up to a second for its last process to leave. */
void tool_group_remove(const char *dir);

/* Moves this process into it. */
void tool_group_join(const char *dir);

/* Pins this process to a CPU; 0 or -errno. */
int tool_pin(int cpu);

/* A perf event of CPU_CLOCK on `cpu`, disabled, or -errno. */
int tool_tick_open(int cpu, uint32_t hz);

#endif
