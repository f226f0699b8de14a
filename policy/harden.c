/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "policy/policy.h"

int policy_harden(void)
{
	const struct rlimit none = { 0, 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -errno;
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return -errno;
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -errno;
	return 0;
}
