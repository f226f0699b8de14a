/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "consumer/output/host.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static void test_read(void **state)
{
	struct utsname names;
	struct statfs fs;
	struct host host;
	int r;

	memset(&host, 0xa5, sizeof(host));
	r = host_read(&host);
	if (r == -ENOENT)
		skip(); /* no cgroup2 here */
	assert_int_equal(r, 0);
	uname(&names);
	assert_string_equal(host.name, names.nodename);
	assert_string_equal(host.kernel, names.release);
	assert_int_equal(strlen(host.boot_id), 36);
	for (size_t i = 0; i < 36; i++)
		assert_true(host.boot_id[i] == '-' || is_hex(host.boot_id[i]));
	assert_int_equal(host.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(statfs(host.cgroup2, &fs), 0);
	assert_int_equal(fs.f_type, CGROUP2_SUPER_MAGIC);
	assert_true(host.cgroup_mode == CGROUP_UNIFIED || host.cgroup_mode == CGROUP_HYBRID);
}

/* Without cgroup2 the mode has the present hierarchy, and nothing else is touched. */
static void test_no_cgroup2(void **state)
{
	struct host host, before;

	memset(&host, 0xa5, sizeof(host));
	host.cgroup_mode = CGROUP_UNIFIED;
	if (host_read(&host) < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	while (umount2("/sys/fs/cgroup", MNT_DETACH) == 0)
		;
	memset(&host, 0xa5, sizeof(host));
	host.cgroup_mode = CGROUP_UNIFIED;
	before = host;
	if (host_read(&host) == 0)
		skip(); /* one is mounted elsewhere too */
	before.cgroup_mode = host.cgroup_mode;
	assert_memory_equal(&host, &before, sizeof(host));
	assert_true(host.cgroup_mode == CGROUP_NONE || host.cgroup_mode == CGROUP_V1_ONLY);
	assert_int_equal(host_read(&host), -ENOENT);
}

UNIT_TESTS(host)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_no_cgroup2), /* last: it changes the process's view */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
