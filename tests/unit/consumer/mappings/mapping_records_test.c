/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/mappings/mapping_records.h"
#include "tests/unit/consumer/symbols/records_testing.h"

static int count(void *context, const struct mapping_record *record, const char *path)
{
	size_t *seen = context;

	assert_true(strlen(path) < MAPPING_PATH_BYTES);
	return ++*seen == 100 ? -ECANCELED : 0;
}

static ssize_t parse(struct mapping_record record, const char *path, size_t cut, size_t *ret_seen)
{
	char *data = NULL;
	size_t bytes;
	FILE *f = open_memstream(&data, &bytes);
	ssize_t r;

	records_file_mapping(f, record, path);
	fclose(f);
	*ret_seen = 0;
	r = mapping_records_parse((const uint8_t *)data, bytes - cut, count, ret_seen);
	free(data);
	return r;
}

static void test_whole_and_cut(void **state)
{
	struct mapping_record record = { .start = 4096, .end = 8192 };
	size_t seen;

	assert_int_equal(parse(record, "/lib/x", 0, &seen), sizeof(record) + 8);
	assert_int_equal(seen, 1);
	assert_int_equal(parse(record, "/lib/x", 1, &seen), 0);
	assert_int_equal(seen, 0);
	assert_int_equal(parse(record, NULL, 0, &seen), sizeof(record));
	assert_int_equal(seen, 1);
	record.flags = MAPPING_MORE;
	record.start = record.end;
	assert_int_equal(parse(record, NULL, 0, &seen), sizeof(record));
}

static void test_malformed(void **state)
{
	uint8_t data[sizeof(struct mapping_record) + 16];
	struct mapping_record record = { .start = 8192, .end = 4096 };
	size_t seen = 0;

	assert_int_equal(parse(record, "/lib/x", 0, &seen), -EBADMSG);
	record.end = 8192;
	assert_int_equal(parse(record, "/lib/x", 0, &seen), -EBADMSG);
	record.end = 8193;
	record.flags = 1u << 31;
	assert_int_equal(parse(record, "/lib/x", 0, &seen), -EBADMSG);
	record.flags = 0;
	record.path_bytes = 8;
	memcpy(data, &record, sizeof(record));
	memset(data + sizeof(record), 'x', 16);
	assert_int_equal(mapping_records_parse(data, sizeof(data), count, &seen), -EBADMSG);
	record.path_bytes = 7;
	memcpy(data, &record, sizeof(record));
	assert_int_equal(mapping_records_parse(data, sizeof(data), count, &seen), -EBADMSG);
	record.path_bytes = MAPPING_PATH_BYTES + 8;
	memcpy(data, &record, sizeof(record));
	assert_int_equal(mapping_records_parse(data, sizeof(data), count, &seen), -EBADMSG);
	assert_int_equal(seen, 0);
}

static void test_stop(void **state)
{
	struct mapping_record records[200];
	size_t seen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		records[i] = (struct mapping_record){ .start = i, .end = i + 1 };
	assert_int_equal(
		mapping_records_parse((const uint8_t *)records, sizeof(records), count, &seen),
		-ECANCELED);
	assert_int_equal(seen, 100);
}

UNIT_TESTS(mapping_records)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_and_cut),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
