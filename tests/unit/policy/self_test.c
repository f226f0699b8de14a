/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <errno.h>

#include "policy/policy.h"
#include "shared/tools/macro.h"

static const char status[] = "Name:\tx\nUmask:\t0022\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"
			     "CapInh:\t0000000000000000\nCapPrm:\t000001fffeffffff\n"
			     "CapEff:\t0000000000000001\nCapBnd:\t0000000000000002\n"
			     "CapAmb:\t0000000000000003\nNoNewPrivs:\t1\nSeccomp:\t2\n"
			     "Seccomp_filters:\t9\n";

static void parses(void **state)
{
	struct policy_self self = { .landlock_abi = 7 };

	assert_int_equal(policy_self_parse(status, &self), 0);
	assert_int_equal(self.uid, 2);
	assert_int_equal(self.gid, 6);
	assert_true(self.cap_prm == 0x1fffeffffffULL);
	assert_int_equal(self.cap_eff, 1);
	assert_int_equal(self.cap_bnd, 2);
	assert_int_equal(self.cap_amb, 3);
	assert_int_equal(self.no_new_privs, 1);
	assert_int_equal(self.seccomp, 2);
	assert_int_equal(self.landlock_abi, 7);
}

/* A missing or unreadable field is an error, never a zero, and changes nothing. */
static void refuses(void **state)
{
	static const char *const faulty[] = {
		"",
		"Name:\tx\n",
		"Name:\tx\nCapInh:\t\n",
		"Name:\tx\nCapInh:\tzz\n",
		"Name:\tx\nCapInh:\tfffffffffffffffff\n",
	};
	struct policy_self self = { .uid = 77 };

	for (size_t i = 0; i < ARRAY_SIZE(faulty); i++)
		assert_int_equal(policy_self_parse(faulty[i], &self), -EBADMSG);
	assert_int_equal(self.uid, 77);
}

static void reads(void **state)
{
	struct policy_self self = { 0 };

	assert_int_equal(policy_self_read(&self), 0);
	assert_int_equal(self.seccomp, 0);
}

static void judges(void **state)
{
	const struct policy_self fine = { .seccomp = 2, .no_new_privs = 1, .uid = 5 };
	const char *what = NULL;
	struct policy_self self;

	assert_true(policy_self_is_bare(&fine, &what));
	assert_null(what);
#define SPOILED(member, value)                           \
	self = fine;                                     \
	self.member = (value);                           \
	what = NULL;                                     \
	assert_false(policy_self_is_bare(&self, &what)); \
	assert_non_null(what)
	SPOILED(cap_eff, 1);
	SPOILED(cap_prm, 1ULL << 40);
	SPOILED(cap_inh, 1);
	SPOILED(cap_bnd, 1);
	SPOILED(cap_amb, 1);
	SPOILED(no_new_privs, 0);
	SPOILED(seccomp, 1);
	SPOILED(uid, 0);
	SPOILED(dumpable, true);
}

UNIT_TESTS(self)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(refuses),
		cmocka_unit_test(reads),
		cmocka_unit_test(judges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
