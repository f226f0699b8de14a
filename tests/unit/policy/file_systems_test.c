/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <string.h>

#include "policy/policy.h"
#include "shared/tools/macro.h"

static bool allows(const char *type)
{
	return policy_file_systems_allow(type, strlen(type));
}

static void allows_local_file_systems(void **state)
{
	static const char *const types[] = { "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_true(allows(types[i]));
}

static void refuses_network_and_user_space_file_systems(void **state)
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
		cmocka_unit_test(allows_local_file_systems),
		cmocka_unit_test(refuses_network_and_user_space_file_systems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
