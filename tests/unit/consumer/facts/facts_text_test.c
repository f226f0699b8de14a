/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/facts/facts_text.h"

static struct facts_text text_of(const char *text)
{
	return (struct facts_text){ text, strlen(text) };
}

static void test_lines_and_words(void **state)
{
	struct facts_text rest = text_of("nr_periods 12\n\n 8:0  rbytes=7 \ncut"), line, word;

	assert_true(facts_text_line(&rest, &line));
	assert_true(facts_text_word(&line, ' ', &word));
	assert_true(facts_text_is(word, "nr_periods"));
	assert_true(facts_text_word(&line, ' ', &word));
	assert_true(facts_text_is(word, "12"));
	assert_false(facts_text_word(&line, ' ', &word));
	assert_true(facts_text_line(&rest, &line));
	assert_false(facts_text_word(&line, ' ', &word));
	assert_true(facts_text_line(&rest, &line));
	assert_true(facts_text_word(&line, ' ', &word));
	assert_true(facts_text_is(word, "8:0"));
	assert_true(facts_text_word(&line, ' ', &word));
	assert_true(facts_text_is(word, "rbytes=7"));
	assert_false(facts_text_word(&line, ' ', &word));
	/* A line without an end may be half of one. */
	assert_false(facts_text_line(&rest, &line));
}

static void test_numbers(void **state)
{
	static const char *const refused[] = { "",   "x",   "-2", "1x",
					       "+1", "1.0", " 1", "18446744073709551616" };
	uint64_t number = 7;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		assert_false(facts_text_number(text_of(refused[i]), &number));
		assert_int_equal(number, 7);
	}
	assert_true(facts_text_number(text_of("0"), &number));
	assert_int_equal(number, 0);
	assert_true(facts_text_number(text_of("9223372036854771712"), &number));
	assert_int_equal(number, 9223372036854771712ULL);
	assert_true(facts_text_number(text_of("max"), &number));
	assert_true(number == UINT64_MAX);
	assert_true(facts_text_number(text_of("-1"), &number));
	assert_true(number == UINT64_MAX);
}

UNIT_TESTS(facts_text)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines_and_words),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
