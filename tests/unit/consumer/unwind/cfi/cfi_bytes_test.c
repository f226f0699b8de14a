/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "consumer/unwind/cfi/cfi_bytes.h"

static struct cfi_bytes over(const uint8_t *from, size_t bytes)
{
	return (struct cfi_bytes){ .at = from, .end = from + bytes };
}

static void test_leb128(void **state)
{
	/* The examples of DWARF 5, figures 22 and 23. */
	static const uint8_t u[] = { 2, 0x7f, 0x80, 1, 0x81, 1, 0x82, 1, 0xb9, 0x64 };
	static const uint8_t s[] = { 2, 0x7e, 0xff, 0, 0x81, 0x7f, 0x80, 1, 0x80, 0x7f };
	struct cfi_bytes b = over(u, sizeof(u)), c = over(s, sizeof(s));

	assert_int_equal(cfi_bytes_uleb(&b), 2);
	assert_int_equal(cfi_bytes_uleb(&b), 127);
	assert_int_equal(cfi_bytes_uleb(&b), 128);
	assert_int_equal(cfi_bytes_uleb(&b), 129);
	assert_int_equal(cfi_bytes_uleb(&b), 130);
	assert_int_equal(cfi_bytes_uleb(&b), 12857);
	assert_false(b.bad);
	assert_int_equal(cfi_bytes_sleb(&c), 2);
	assert_int_equal(cfi_bytes_sleb(&c), -2);
	assert_int_equal(cfi_bytes_sleb(&c), 127);
	assert_int_equal(cfi_bytes_sleb(&c), -127);
	assert_int_equal(cfi_bytes_sleb(&c), 128);
	assert_int_equal(cfi_bytes_sleb(&c), -128);
	assert_false(c.bad);
}

/* Ten bytes hold 64 bits; an eleventh, or no end at all, is broken. */
static void test_endless_leb128(void **state)
{
	uint8_t all[64] = {};
	struct cfi_bytes b = over(all, sizeof(all));

	memset(all, 0xff, sizeof(all));
	all[9] = 1;
	assert_true(cfi_bytes_uleb(&b) == UINT64_MAX);
	assert_false(b.bad);
	assert_int_equal(cfi_bytes_uleb(&b), 0);
	assert_true(b.bad && b.at == b.end);
	all[9] = 0x7f;
	b = over(all, sizeof(all));
	assert_int_equal(cfi_bytes_sleb(&b), -1);
	assert_false(b.bad);
	cfi_bytes_sleb(&b);
	assert_true(b.bad && b.at == b.end);
}

static void test_end(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct cfi_bytes b = over(bytes, sizeof(bytes));

	assert_int_equal(cfi_bytes_word(&b, 2), 0x201);
	assert_int_equal(cfi_bytes_word(&b, 2), 0);
	assert_true(b.bad);
	assert_int_equal(cfi_bytes_u8(&b), 0);
	assert_int_equal(cfi_bytes_left(&b), 0);
	b = over(bytes, sizeof(bytes));
	assert_null(cfi_bytes_skip(&b, UINT64_MAX));
	assert_true(b.bad);
	b = over(bytes, sizeof(bytes));
	assert_ptr_equal(cfi_bytes_skip(&b, 3), bytes);
	assert_false(b.bad);
}

static void test_pointers(void **state)
{
	static const uint8_t bytes[16] = { 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 8 };
	struct {
		uint8_t encoding;
		uint64_t expected;
		size_t taken;
	} rows[] = {
		{ CFI_ABSOLUTE, 0xfffffffffffffff0, 8 },
		{ CFI_UDATA2, 0xfff0, 2 },
		{ CFI_UDATA4, 0xfffffff0, 4 },
		{ CFI_SDATA2, -0x10ULL, 2 },
		{ CFI_SDATA4, -0x10ULL, 4 },
		{ CFI_SDATA8, -0x10ULL, 8 },
		{ CFI_PCREL | CFI_SDATA4, 0xff4, 4 },
		{ CFI_ALIGNED, 0x8ffffffff, 12 }, /* 0x1004 is aligned to 0x1008 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cfi_bytes b = over(bytes, sizeof(bytes));

		assert_true(cfi_bytes_pointer(&b, rows[i].encoding, 0x1004) == rows[i].expected);
		assert_int_equal(b.at - bytes, rows[i].taken);
		assert_false(b.bad);
	}
	for (unsigned int encoding = 0x20; encoding < 0x100; encoding += 0x10) {
		struct cfi_bytes b = over(bytes, sizeof(bytes));

		cfi_bytes_pointer(&b, (uint8_t)(encoding | CFI_UDATA4), 0);
		assert_int_equal(b.bad, encoding != CFI_ALIGNED);
	}
}

UNIT_TESTS(cfi_bytes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leb128),
		cmocka_unit_test(test_endless_leb128),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_pointers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
