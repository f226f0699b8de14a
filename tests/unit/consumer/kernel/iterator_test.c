/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/kernel/iterator.h"

/* Records of 12 bytes: they never fit the buffer evenly, so some are cut at every read. */
enum { RECORD = 12 };

static ssize_t sum(void *context, const uint8_t *data, size_t bytes)
{
	uint64_t *total = context;
	size_t at;

	for (at = 0; bytes - at >= RECORD; at += RECORD) {
		uint32_t n;

		memcpy(&n, data + at, sizeof(n));
		*total += n;
	}
	return (ssize_t)at;
}

static ssize_t refuse(void *context, const uint8_t *data, size_t bytes)
{
	return -EDOM;
}

static ssize_t never_whole(void *context, const uint8_t *data, size_t bytes)
{
	return 0;
}

static void test_reads(void **state)
{
	enum { COUNT = 50000 };
	char path[] = "/tmp/records_test.XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	uint64_t total = 0;

	assert_non_null(f);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t record[RECORD / 4] = { i };

		fwrite(record, sizeof(record), 1, f);
	}
	fflush(f);
	assert_int_equal(iterator_read(path, sum, &total), 0);
	assert_int_equal(total, (uint64_t)COUNT * (COUNT - 1) / 2);
	assert_int_equal(iterator_read(path, refuse, NULL), -EDOM);
	assert_int_equal(iterator_read(path, never_whole, NULL), -EBADMSG);
	fputc('x', f);
	fclose(f);
	assert_int_equal(iterator_read(path, sum, &total), -EBADMSG);
	unlink(path);
	assert_int_equal(iterator_read(path, sum, &total), -ENOENT);
	assert_int_equal(iterator_read("/", sum, &total), -EISDIR);
}

UNIT_TESTS(iterator)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reads) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
