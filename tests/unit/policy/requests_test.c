/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "policy/policy.h"
#include "shared/broker/broker.h"

static void the_consumers_alone(void **state)
{
	for (uint32_t request = 0; request < BROKER_COUNT_; request++) {
		assert_true(policy_requests_allow(POLICY_CONSUMER, request));
		assert_false(policy_requests_allow(POLICY_CTL, request));
		assert_false(policy_requests_allow(POLICY_LOADER, request));
		assert_false(policy_requests_allow(POLICY_BROKER, request));
	}
	assert_false(policy_requests_allow(POLICY_CONSUMER, BROKER_COUNT_));
	assert_false(policy_requests_allow(POLICY_CONSUMER, UINT32_MAX));
}

UNIT_TESTS(requests)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_consumers_alone) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
