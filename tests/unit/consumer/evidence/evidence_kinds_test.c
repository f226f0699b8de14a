/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "consumer/evidence/evidence_kinds.h"

/* Each kind is at the place of its id, and in the order once. */
static void test_places(void **state)
{
	size_t known = 0, ordered = 0;

	for (int i = 0; i < SIGNAL_COUNT_; i++) {
		if (!evidence_kinds[i])
			continue;
		known++;
		assert_int_equal(evidence_kinds[i]->id, i);
		assert_non_null(evidence_kinds[i]->is_auto);
		assert_non_null(evidence_kinds[i]->create);
		assert_non_null(evidence_kinds[i]->destroy);
	}
	for (; evidence_kinds_in_order[ordered]; ordered++)
		assert_ptr_equal(evidence_kinds_in_order[ordered],
				 evidence_kinds[evidence_kinds_in_order[ordered]->id]);
	assert_int_equal(ordered, known);
	assert_true(known > 5);
}

/* One kind has the stacks of running threads, one those of waiting ones, and a table has a word. */
static void test_words(void **state)
{
	unsigned int of[STACKS_WAKING + 1] = { 0 };

	for (size_t i = 0; evidence_kinds_in_order[i]; i++) {
		const struct signal_kind *kind = evidence_kinds_in_order[i];

		of[kind->stacks_of]++;
		if (kind->table)
			assert_non_null(kind->counts);
	}
	assert_int_equal(of[STACKS_RUNNING], 1);
	assert_int_equal(of[STACKS_WAITING], 1);
	assert_int_equal(of[STACKS_WAKING], 1);
	assert_null(evidence_kinds[SIGNAL_FAULT]);
}

UNIT_TESTS(evidence_kinds)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
