/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/policy.h"
#include "shared/tools/macro.h"

#define BIT(c) (1ULL << (c))

static void stages_only_shrink(void **state)
{
	for (int s = STAGE_CHECK; s < STAGE_DONE; s++) {
		uint64_t now = policy_capabilities_rows(POLICY_LOADER, (enum policy_stage)s);
		uint64_t next = policy_capabilities_rows(POLICY_LOADER, (enum policy_stage)(s + 1));

		assert_true((next & ~now) == 0);
	}
	assert_true(policy_capabilities_rows(POLICY_LOADER, STAGE_DONE) == 0);
}

static void rows_as_written(void **state)
{
	const uint64_t broker = BIT(CAP_PERFMON) | BIT(CAP_SYS_ADMIN) | BIT(CAP_DAC_READ_SEARCH) |
				BIT(CAP_SYS_PTRACE) | BIT(CAP_CHECKPOINT_RESTORE) |
				BIT(CAP_SYS_RESOURCE);
	uint64_t pin = policy_capabilities_rows(POLICY_LOADER, STAGE_PIN);

	/* As docs/threats.md and the unit have them: another one is to be argued for there. */
	assert_true(policy_capabilities_rows(POLICY_BROKER, STAGE_SERVE) == broker);
	assert_true(policy_capabilities_rows(POLICY_RESOLVER, STAGE_CHECK) == 0);
	assert_true(policy_capabilities_rows(POLICY_LOADER, STAGE_ATTACH) & BIT(CAP_BPF));
	assert_false(pin & (BIT(CAP_BPF) | BIT(CAP_PERFMON)));
	assert_true(pin & BIT(CAP_CHOWN));
	assert_true(policy_capabilities_rows(POLICY_CONSUMER, STAGE_CHECK) == 0);
	assert_true(policy_capabilities_rows(POLICY_CTL, STAGE_CHECK) == 0);
}

/* In a child: none of it can be taken back. */
static void hardens(void **state)
{
	struct rlimit core = { 1, 1 };
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		bool fine = policy_harden() == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
			    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 &&
			    getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0;

		_exit(fine ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The loader's capabilities are those of the preflight: one name each, in lower case. */
static void preflight_asks_for_them(void **state)
{
	static const struct {
		int capability;
		const char *name;
	} asked[] = {
#define NEED(id, level, lost, how)
#define NEED_CAP(id, capability, level, lost) { capability, #id },
#include "loader/preflight/preflight.def"
#undef NEED
#undef NEED_CAP
	};
	uint64_t set = 0;

	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		assert_int_equal(strncmp(asked[i].name, "cap_", 4), 0);
		set |= BIT(asked[i].capability);
	}
	assert_true(set == policy_capabilities_rows(POLICY_LOADER, STAGE_CHECK));
}

UNIT_TESTS(capabilities)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_only_shrink),
		cmocka_unit_test(rows_as_written),
		cmocka_unit_test(preflight_asks_for_them),
		cmocka_unit_test(hardens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
