/* SPDX-License-Identifier: BSD-2-Clause */
/* own_time_testing.h: a clock for limits that a busy machine must not break. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_OWN_TIME_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_OWN_TIME_TESTING_H

#include <unistd.h>

#include "consumer/io/cpu_wait.h"
#include "shared/tools/clock.h"

/*
 * CLOCK_MONOTONIC in ns, less the time that the main thread was ready to run and had no CPU. Only
 * differences mean something.
 */
static inline uint64_t own_time_ns(void)
{
	int fd = cpu_wait_open();
	uint64_t ns = clock_mono_ns() - cpu_wait_ns(fd);

	if (fd >= 0)
		close(fd);
	return ns;
}

#endif
