/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <string.h>

#include "policy/policy.h"
#include "shared/tools/macro.h"

static bool allows(const char *type)
{
	return policy_file_systems_allow(type, strlen(type));
}

static void what_the_kernel_answers_for(void **state)
{
	static const char *const types[] = { "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_true(allows(types[i]));
}

static void what_a_process_or_a_network_answers_for(void **state)
{
	static const char *const types[] = { "fuse", "fuse.sshfs", "fuseblk", "autofs",
					     "nfs",  "nfs4",	   "cifs",    "9p",
					     "proc", "sysfs",	   "cgroup2", "debugfs",
					     "bpf",  "",	   "ext",     "ext4x" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_false(allows(types[i]));
}

UNIT_TESTS(file_systems)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_kernel_answers_for),
		cmocka_unit_test(what_a_process_or_a_network_answers_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
