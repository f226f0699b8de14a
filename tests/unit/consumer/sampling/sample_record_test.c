/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/sample_testing.h"

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define SLOTS 8u
#define CPUS  4u

static void test_valid(void **state)
{
	static const uint16_t counts[] = { 0, 1, 30, STACK_FRAMES };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(counts); k++)
			for (uint32_t i_flags = 0; i_flags < 5; i_flags++) {
				static const uint32_t some[] = { 0, SAMPLE_BUILD_ID,
								 SAMPLE_BUILD_ID | SAMPLE_ADDRESSES,
								 SAMPLE_WAKER,
								 SAMPLE_WAKER | SAMPLE_BUILD_ID };
				uint32_t flags = some[i_flags];
				_cleanup_free_ struct sample *s = NULL;
				size_t bytes;

				s = fake_sample(counts[i], counts[k], flags, &bytes);
				assert_true(sample_record_valid(s, bytes, SLOTS, CPUS));
				if (flags & SAMPLE_WAKER)
					assert_ptr_equal(sample_record_waker(s) + 1,
							 (uint8_t *)s + bytes);
				else
					assert_null(sample_record_waker(s));
				/* The ring rounds up to 8: more is fine, less is not. */
				assert_false(sample_record_valid(s, bytes - 1, SLOTS, CPUS));
				assert_false(sample_record_valid(s, 0, SLOTS, CPUS));
			}
}

static void test_lies(void **state)
{
	_cleanup_free_ struct sample *s = NULL;
	size_t bytes;

	s = fake_sample(STACK_FRAMES, STACK_FRAMES, SAMPLE_BUILD_ID, &bytes);
#define REFUSED(field, lie)                                               \
	do {                                                              \
		__typeof__(s->field) was = s->field;                      \
		s->field = (lie);                                         \
		assert_false(sample_record_valid(s, bytes, SLOTS, CPUS)); \
		s->field = was;                                           \
		assert_true(sample_record_valid(s, bytes, SLOTS, CPUS));  \
	} while (0)
	REFUSED(kernel_frames, STACK_FRAMES + 1);
	REFUSED(kernel_frames, UINT16_MAX);
	REFUSED(user_frames, STACK_FRAMES + 1);
	REFUSED(user_frames, UINT16_MAX);
	REFUSED(slot, SLOTS);
	REFUSED(slot, NO_SLOT);
	REFUSED(cpu, CPUS);
	REFUSED(cpu, UINT32_MAX);
	REFUSED(call, (uint32_t)INT32_MAX + 1);
	REFUSED(call, ACCOUNT_CALL_COMPAT - 1);
#undef REFUSED
	/* However long the record is. */
	s->user_frames = STACK_FRAMES + 1;
	assert_false(sample_record_valid(s, 2 * bytes, SLOTS, CPUS));
	s->user_frames = STACK_FRAMES;
	s->kernel_frames = STACK_FRAMES + 1;
	assert_false(sample_record_valid(s, 2 * bytes, SLOTS, CPUS));
	s->kernel_frames = STACK_FRAMES;
	assert_false(sample_record_valid(s, bytes, 0, CPUS));
	assert_false(sample_record_valid(s, bytes, SLOTS, 0));
	assert_false(sample_record_valid(s, sizeof(*s) - 1, SLOTS, CPUS));
}

/* The parts lie behind each other, to the record's last byte. */
static void test_parts(void **state)
{
	static const uint32_t build_ids = SAMPLE_BUILD_ID | SAMPLE_ADDRESSES;
	_cleanup_free_ struct sample *raw = NULL, *told = NULL;
	const struct frame_build_id *leaf;
	size_t bytes;

	raw = fake_sample(2, 3, 0, &bytes);
	assert_null(sample_record_ids(raw));
	assert_ptr_equal(sample_record_kernel(raw), raw + 1);
	assert_ptr_equal(sample_record_addresses(raw) + 3, (uint8_t *)raw + bytes);
	assert_null(sample_record_leaf_id(raw));
	raw->flags = SAMPLE_UNWOUND | SAMPLE_LEAF_ID;
	leaf = sample_record_leaf_id(raw);
	assert_ptr_equal(leaf, (uint8_t *)raw + bytes);
	assert_false(sample_record_valid(raw, bytes, SLOTS, CPUS));
	assert_true(sample_record_valid(raw, bytes + sizeof(*leaf), SLOTS, CPUS));

	told = fake_sample(2, 3, build_ids, &bytes);
	assert_ptr_equal(sample_record_ids(told), sample_record_kernel(told) + 2);
	assert_ptr_equal(sample_record_addresses(told) + 3, (uint8_t *)told + bytes);
	told->flags |= SAMPLE_LEAF_ID;
	assert_null(sample_record_leaf_id(told));
	told->flags = SAMPLE_BUILD_ID;
	assert_null(sample_record_addresses(told));
}

UNIT_TESTS(sample_record)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
