/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <string.h>

#include "shared/broker/broker.h"

/* The wire format is a contract between two builds: these numbers are not the compiler's to choose.
 */
static void keeps_the_lengths(void **state)
{
	static const size_t bytes[] = { 24, 24, 24, 32, 48, 32 };

	assert_int_equal(BROKER_COUNT_, 6);
	for (uint32_t i = 0; i < BROKER_COUNT_; i++)
		assert_int_equal(broker_row(i)->bytes, bytes[i]);
	assert_int_equal(sizeof(struct broker_answer), 24);
	assert_null(broker_row(BROKER_COUNT_));
	assert_null(broker_row(UINT32_MAX));
}

static void only_hello_comes_first(void **state)
{
	assert_string_equal(broker_row(BROKER_HELLO)->name, "hello");
	for (uint32_t i = 0; i < BROKER_COUNT_; i++)
		assert_int_equal(broker_row(i)->stage,
				 i == BROKER_HELLO ? BROKER_STAGE_NEW : BROKER_STAGE_READY);
}

static void names_every_refusal_once(void **state)
{
	for (uint32_t i = 0; i < REFUSAL_COUNT_; i++) {
		assert_true(strlen(broker_refusal_help(i)) > 0);
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(broker_refusal_name(i), broker_refusal_name(k));
	}
	assert_string_equal(broker_refusal_name(REFUSAL_PEER), "peer");
	assert_string_equal(broker_refusal_name(REFUSAL_COUNT_), "unknown");
	assert_string_equal(broker_refusal_help(UINT32_MAX), "unknown");
}

UNIT_TESTS(broker)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_lengths),
		cmocka_unit_test(only_hello_comes_first),
		cmocka_unit_test(names_every_refusal_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
