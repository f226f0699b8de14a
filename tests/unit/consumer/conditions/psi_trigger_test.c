/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/conditions/psi_trigger.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

/* The NUL is written: psi_write() overwrites the last byte, and would take a digit. */
static void test_text(void **state)
{
	char text[PSI_TRIGGER_TEXT_BYTES];

	memset(text, 'x', sizeof(text));
	assert_int_equal(psi_trigger_text(text, false, 100000, 500000), 19);
	assert_memory_equal(text, "some 100000 500000", 19);
	assert_int_equal(psi_trigger_text(text, true, 1, 9), 9);
	assert_memory_equal(text, "full 1 9", 9);
	assert_int_equal(psi_trigger_text(text, true, 10000000, 10000000), 23);
	assert_memory_equal(text, "full 10000000 10000000", 23);
}

/* What the file was asked, each write by itself. */
static int record(bool full, uint32_t stall_ms, uint32_t window_ms, enum psi_trigger_power *power,
		  char *ret_text)
{
	int fds[2], r;
	ssize_t n;

	assert_int_equal(pipe2(fds, O_CLOEXEC | O_DIRECT), 0);
	r = psi_trigger_arm(fds[1], full, stall_ms, window_ms, power);
	n = read(fds[0], ret_text, PSI_TRIGGER_TEXT_BYTES);
	assert_true(n > 0 && ret_text[n - 1] == 0);
	close(fds[0]);
	close(fds[1]);
	return r;
}

/* A file that takes everything is one that a privileged process opened. */
static void test_learns_privilege(void **state)
{
	enum psi_trigger_power power = PSI_TRIGGER_POWER_UNKNOWN;
	char text[PSI_TRIGGER_TEXT_BYTES];

	assert_int_equal(record(false, 100, 2000, &power, text), 0);
	assert_string_equal(text, "some 100000 2000001");
	assert_int_equal(power, PSI_TRIGGER_PRIVILEGED);
	/* From then on as it was asked for. */
	assert_int_equal(record(false, 100, 2000, &power, text), 0);
	assert_string_equal(text, "some 100000 2000000");
	power = PSI_TRIGGER_POWER_UNKNOWN;
	assert_int_equal(record(true, 50, 500, &power, text), 0);
	assert_string_equal(text, "full 50000 500000");
	assert_int_equal(power, PSI_TRIGGER_PRIVILEGED);
	/* The longest window has no room for a microsecond more: nothing is learnt. */
	power = PSI_TRIGGER_POWER_UNKNOWN;
	assert_int_equal(record(false, 10000, 10000, &power, text), 0);
	assert_string_equal(text, "some 10000000 10000000");
	assert_int_equal(power, PSI_TRIGGER_POWER_UNKNOWN);
}

static bool privileged(void)
{
	_cleanup_free_ char *text = NULL;
	const char *at;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/status", 65536, &text, &bytes), 0);
	at = strstr(text, "CapEff:");
	assert_non_null(at);
	return strtoull(at + 7, NULL, 16) >> 24 & 1; /* CAP_SYS_RESOURCE */
}

/* Against the kernel: its answer to this process shows the privilege. */
static void test_kernel(void **state)
{
	enum psi_trigger_power power = PSI_TRIGGER_POWER_UNKNOWN;
	_cleanup_close_ int fd = open("/proc/pressure/cpu", O_RDWR | O_CLOEXEC);
	_cleanup_close_ int other = open("/proc/pressure/cpu", O_RDWR | O_CLOEXEC);
	_cleanup_close_ int readable = open("/proc/pressure/cpu", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || other < 0)
		skip();
	assert_int_equal(psi_trigger_arm(other, false, 500, 500, &power),
			 privileged() ? 0 : -EINVAL);
	assert_int_equal(power, privileged() ? PSI_TRIGGER_PRIVILEGED : PSI_TRIGGER_PLAIN);
	power = PSI_TRIGGER_POWER_UNKNOWN;
	assert_int_equal(psi_trigger_arm(fd, false, 2000, 2000, &power), 0);
	assert_int_equal(power, privileged() ? PSI_TRIGGER_PRIVILEGED : PSI_TRIGGER_PLAIN);
	/* One trigger per descriptor. */
	assert_int_equal(psi_trigger_arm(fd, false, 2000, 2000, &power), -EBUSY);
	assert_int_equal(psi_trigger_arm(readable, false, 2000, 2000, &power), -EBADF);
	/* A stall longer than its window is none. */
	assert_int_equal(psi_trigger_arm(readable, false, 0, 2000, &power), -EBADF);
}

/* Each has its own sentence; only a trigger that may pass is tried again. */
static void test_refusals(void **state)
{
	static const int errors[] = { -ENOTCONN, -EACCES, -EINVAL, -EBUSY,  -EOPNOTSUPP, -ENODEV,
				      -EMFILE,	 -ENFILE, -ENOSPC, -ENOMEM, -EAGAIN,	 -EPERM };
	static const int passing[] = { -ENOTCONN, -EMFILE, -ENFILE, -ENOSPC, -ENOMEM, -EAGAIN };
	const char *other = psi_trigger_refusal(-EXDEV).reason;

	assert_non_null(other);
	assert_int_equal(psi_trigger_refusal(-EXDEV).error, -EXDEV);
	assert_false(psi_trigger_refusal(-EXDEV).retry);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct psi_trigger_refusal r = psi_trigger_refusal(errors[i]);
		bool again = false;

		assert_int_equal(r.error, errors[i]);
		assert_string_not_equal(r.reason, other);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(r.reason, psi_trigger_refusal(errors[k]).reason);
		for (size_t k = 0; k < ARRAY_SIZE(passing); k++)
			again = again || passing[k] == errors[i];
		assert_int_equal(r.retry, again);
		assert_int_equal(r.all, again);
	}
	assert_string_equal(psi_trigger_refusal(-ENOENT).reason,
			    psi_trigger_refusal(-ENODEV).reason);
}

static void test_pace(void **state)
{
	assert_string_not_equal(psi_trigger_pace(PSI_TRIGGER_PLAIN),
				psi_trigger_pace(PSI_TRIGGER_PRIVILEGED));
	assert_string_not_equal(psi_trigger_pace(PSI_TRIGGER_PLAIN),
				psi_trigger_pace(PSI_TRIGGER_POWER_UNKNOWN));
}

UNIT_TESTS(psi_trigger)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),   cmocka_unit_test(test_learns_privilege),
		cmocka_unit_test(test_kernel), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
