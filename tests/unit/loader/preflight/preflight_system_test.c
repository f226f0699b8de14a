/* SPDX-License-Identifier: BSD-2-Clause */
/* Why pressure is missing, by its visible signs; the other probes are preflight_test's. */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <string.h>

#include "loader/preflight/preflight_internal.h"
#include "shared/tools/macro.h"

static void psi_is_told_apart(void **state)
{
	static const struct {
		int error;
		bool compiled;
		const char *cmdline, *says;
		enum preflight_state expected;
	} cases[] = {
		{ 0, true, "psi=0", "", PREFLIGHT_PRESENT },
		{ ENOENT, true, "quiet psi=0", "command line", PREFLIGHT_MISSING },
		{ ENOENT, true, "psi=0 quiet", "command line", PREFLIGHT_MISSING },
		{ ENOENT, true, "quiet nopsi=0", "off by default", PREFLIGHT_MISSING },
		{ EOPNOTSUPP, false, "quiet", "EOPNOTSUPP", PREFLIGHT_MISSING },
		{ ENOENT, false, "quiet", "built without", PREFLIGHT_MISSING },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct preflight_row row = { .state = PREFLIGHT_UNKNOWN };

		preflight_system_explain_psi(cases[i].error, cases[i].compiled, cases[i].cmdline,
					     &row);
		assert_int_equal(row.state, cases[i].expected);
		assert_non_null(strstr(row.detail, cases[i].says));
	}
}

/* A mount of /proc that hides processes, with and without a group that sees them. */
static void proc_is_told_apart(void **state)
{
	static const struct {
		const char *mounts, *says;
		enum preflight_state expected;
	} cases[] = {
		{ "proc /proc proc rw,nosuid 0 0\n", "", PREFLIGHT_PRESENT },
		{ "proc /proc proc rw,hidepid=off 0 0\n", "", PREFLIGHT_PRESENT },
		{ "proc /proc proc rw,hidepid=2 0 0\n", "hidepid=", PREFLIGHT_MISSING },
		{ "proc /proc proc rw,gid=5,hidepid=invisible 0 0\n", "in that group",
		  PREFLIGHT_PRESENT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct preflight_row row = { .state = PREFLIGHT_UNKNOWN };

		preflight_system_explain_proc(cases[i].mounts, &row);
		assert_int_equal(row.state, cases[i].expected);
		assert_non_null(strstr(row.detail, cases[i].says));
	}
}

UNIT_TESTS(preflight_system)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psi_is_told_apart),
		cmocka_unit_test(proc_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
