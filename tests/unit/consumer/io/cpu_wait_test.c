/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/io/cpu_wait.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define BUSY_NS	 (300 * NSEC_PER_MSEC)
#define SLEEP_US 100000u

/* Stays on this thread's present CPU, with everything that it starts from now on. */
static void stay(cpu_set_t *ret_before)
{
	cpu_set_t one;

	assert_int_equal(sched_getaffinity(0, sizeof(*ret_before), ret_before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* Works for at least BUSY_NS; returns the part of *ret_ns in which this thread had no CPU. */
static uint64_t wait_while_busy(int fd, uint64_t *ret_ns)
{
	uint64_t began_ns = clock_mono_ns(), before_ns = cpu_wait_ns(fd), waited_ns;

	while (clock_mono_ns() < began_ns + BUSY_NS)
		;
	waited_ns = cpu_wait_ns(fd) - before_ns;
	*ret_ns = clock_mono_ns() - began_ns;
	return waited_ns;
}

/* Two that want one CPU each wait for some half of the time; a thread that sleeps waits for none.
 */
static void test_waits(void **state)
{
	int fd = cpu_wait_open();
	cpu_set_t before;
	uint64_t waited_ns, all_ns;
	pid_t other;

	if (fd < 0)
		skip(); /* CONFIG_SCHED_INFO is not set */
	stay(&before);
	other = fork();
	assert_true(other >= 0);
	if (other == 0)
		for (;;)
			;
	waited_ns = wait_while_busy(fd, &all_ns);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	assert_in_range(waited_ns, BUSY_NS / 5, all_ns);

	waited_ns = cpu_wait_ns(fd);
	all_ns = clock_mono_ns();
	usleep(SLEEP_US);
	waited_ns = cpu_wait_ns(fd) - waited_ns;
	all_ns = clock_mono_ns() - all_ns;
	assert_true(waited_ns + SLEEP_US * 900 <= all_ns);
	close(fd);
}

/* Without the kernel's figures the time is none, as in the header. */
static void test_none(void **state)
{
	assert_int_equal(cpu_wait_ns(-1), 0);
	assert_int_equal(cpu_wait_ns(-ENOENT), 0);
}

UNIT_TESTS(cpu_wait)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
