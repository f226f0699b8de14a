/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>

#include "tests/unit/runner/unit.h"

#include "shared/tools/number_text.h"

static void is(double number, int digits, const char *wanted)
{
	char text[NUMBER_TEXT_BYTES];

	assert_string_equal(number_text(number, digits, text), wanted);
}

/* No exponent, however large or small. */
static void test_number(void **state)
{
	is(0, 3, "0");
	is(0.00002, 3, "0.0000");
	is(0.45123, 3, "0.451");
	is(12.5, 4, "12.5");
	is(112.5, 4, "112.5");
	is(999.6, 3, "1000");
	is(1833.4, 3, "1833");
	is(16384, 4, "16384");
	is(123456789, 3, "123456789");
}

static void test_time(void **state)
{
	char text[NUMBER_TEXT_BYTES];

	assert_string_equal(number_text_time(0, text), "0 ns");
	assert_string_equal(number_text_time(999, text), "999 ns");
	assert_string_equal(number_text_time(16400, text), "16.4 us");
	assert_string_equal(number_text_time(999999, text), "1 ms");
	assert_string_equal(number_text_time(4194304, text), "4.19 ms");
	assert_string_equal(number_text_time(1833000000, text), "1833 ms");
}

static void test_bytes(void **state)
{
	char text[NUMBER_TEXT_BYTES];

	assert_string_equal(number_text_bytes(0, text), "0 bytes");
	assert_string_equal(number_text_bytes(1, text), "1 byte");
	assert_string_equal(number_text_bytes(8, text), "8 bytes");
	assert_string_equal(number_text_bytes(2048, text), "2.0 KiB");
	assert_string_equal(number_text_bytes(1u << 24, text), "16.0 MiB");
}

UNIT_TESTS(number_text)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
