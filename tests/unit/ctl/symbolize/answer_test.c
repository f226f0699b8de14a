/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <string.h>

#include "ctl/symbolize/answer.h"

static char data[ANSWER_BYTES];

static void test_there_and_back(void **state)
{
	const struct answer there = {
		.raw = "_Z1fv",
		.n = 3,
		.places = { { "f", "/f.c", 7 }, { "g", NULL, 0 }, { NULL, "/h.h", UINT32_MAX } },
	};
	struct answer back;

	assert_int_equal(answer_read(data, answer_write(&there, data), &back), 0);
	assert_int_equal(back.unnamed, UNNAMED_NOT);
	assert_string_equal(back.raw, "_Z1fv");
	assert_int_equal(back.n, 3);
	assert_string_equal(back.places[0].fn, "f");
	assert_string_equal(back.places[0].file, "/f.c");
	assert_int_equal(back.places[0].line, 7);
	assert_null(back.places[1].file);
	assert_null(back.places[2].fn);
	assert_int_equal(back.places[2].line, UINT32_MAX);
}

static void test_without_name(void **state)
{
	const struct answer there = { .unnamed = UNNAMED_STRIPPED, .n = 1 };
	struct answer back;

	assert_int_equal(answer_read(data, answer_write(&there, data), &back), 0);
	assert_int_equal(back.unnamed, UNNAMED_STRIPPED);
	assert_null(back.places[0].fn);
}

/* The longest of everything fits; a name is cut, a path left out. */
static void test_walls(void **state)
{
	struct answer there = { .n = ANSWER_PLACES }, back;
	static char name[2 * ANSWER_NAME_BYTES], file[2 * ANSWER_FILE_BYTES];
	size_t bytes;

	memset(name, 'n', sizeof(name) - 1);
	memset(file, 'f', ANSWER_FILE_BYTES - 1);
	there.raw = name;
	for (int i = 0; i < ANSWER_PLACES; i++)
		there.places[i] = (struct answer_place){ name, file, 1 };
	bytes = answer_write(&there, data);
	assert_true(bytes <= ANSWER_BYTES);
	assert_int_equal(answer_read(data, bytes, &back), 0);
	assert_int_equal(strlen(back.places[ANSWER_PLACES - 1].fn), ANSWER_NAME_BYTES - 1);
	assert_int_equal(strlen(back.places[0].file), ANSWER_FILE_BYTES - 1);
	file[ANSWER_FILE_BYTES - 1] = 'f';
	bytes = answer_write(&there, data);
	assert_int_equal(answer_read(data, bytes, &back), 0);
	assert_null(back.places[0].file);
	assert_int_equal(back.places[0].line, 0);
}

/* Each shorter message is refused, and each longer one. */
static void test_cut_and_long(void **state)
{
	const struct answer there = { .raw = "r",
				      .n = 2,
				      .places = { { "f", "/f", 1 }, { "g", "/g", 2 } } };
	struct answer back;
	size_t bytes = answer_write(&there, data);

	for (size_t i = 0; i < bytes; i++)
		assert_int_equal(answer_read(data, i, &back), -EBADMSG);
	assert_int_equal(answer_read(data, bytes + 1, &back), -EBADMSG);
}

static void test_lies(void **state)
{
	const struct answer there = { .n = 1, .places = { { "f", "/f", 1 } } };
	size_t bytes = answer_write(&there, data);
	struct answer back;
	uint32_t word;

	word = UNNAMED_COUNT_;
	memcpy(data, &word, sizeof(word));
	assert_int_equal(answer_read(data, bytes, &back), -EBADMSG);
	word = UNNAMED_STRIPPED; /* with a name */
	memcpy(data, &word, sizeof(word));
	assert_int_equal(answer_read(data, bytes, &back), -EBADMSG);
	word = UNNAMED_NOT;
	memcpy(data, &word, sizeof(word));
	assert_int_equal(answer_read(data, bytes, &back), 0);
	word = ANSWER_PLACES + 1;
	memcpy(data + 4, &word, sizeof(word));
	assert_int_equal(answer_read(data, bytes, &back), -EBADMSG);
	word = 0;
	memcpy(data + 4, &word, sizeof(word));
	assert_int_equal(answer_read(data, bytes, &back), -EBADMSG);
}

UNIT_TESTS(answer)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_without_name),
		cmocka_unit_test(test_walls),	       cmocka_unit_test(test_cut_and_long),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
