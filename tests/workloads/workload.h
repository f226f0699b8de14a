/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workload.h: what the test programs share: arguments within limits, a deadline that always ends
 * them, and attributes that keep the function names on the stack. Header only, so that each program
 * stays one file.
 */
#ifndef TROCAR_TESTS_WORKLOADS_WORKLOAD_H
#define TROCAR_TESTS_WORKLOADS_WORKLOAD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WORKLOAD_SECONDS_MAX 600u
#define WORKLOAD_SLICE_NS    5000000ull	 /* one turn of work between two looks at the clock */
#define WORKLOAD_REST_NS     15000000ull /* the rest after each turn while calm: 25 % of a CPU */

#define WORKLOAD_TURNS \
	20000u /* between two looks at the clock: the leaf is the spinning function */

/* noipa keeps gcc from renaming a function to name.constprop.0 or name.isra.0. */
#if defined(__GNUC__) && !defined(__clang__)
#define NAMED __attribute__((noinline, noclone, noipa))
#else
#define NAMED __attribute__((noinline))
#endif

/* Work behind the call keeps it from becoming a jump, which would drop the caller's frame. */
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

static inline uint64_t workload_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* Argument `i` as a whole number within [min, max], `fallback` when it is not there; exits 2
 * otherwise. */
static inline uint32_t workload_number(int argc, char **argv, int i, uint32_t fallback,
				       uint32_t min, uint32_t max)
{
	char *end = NULL;
	unsigned long n;

	if (i >= argc)
		return fallback;
	errno = 0;
	n = strtoul(argv[i], &end, 10);
	if (errno || end == argv[i] || *end || n < min || n > max) {
		fprintf(stderr, "%s: argument %d: %s: not a number from %u to %u\n", argv[0], i,
			argv[i], min, max);
		_exit(2);
	}
	return (uint32_t)n;
}

/* The deadline: argument 1, in seconds from now. SIGALRM ends a blocked system call. */
static inline uint64_t workload_deadline(int argc, char **argv, const char *usage)
{
	uint32_t seconds;

	if (argc < 2) {
		fprintf(stderr, "usage: %s\n", usage);
		_exit(2);
	}
	seconds = workload_number(argc, argv, 1, 1, 1, WORKLOAD_SECONDS_MAX);
	alarm(seconds + 2);
	return workload_now_ns() + seconds * 1000000000ull;
}

static inline void workload_rest(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000ull),
			       .tv_nsec = (long)(ns % 1000000000ull) };

	nanosleep(&ts, NULL);
}

#endif
