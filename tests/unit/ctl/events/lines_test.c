/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/events/lines.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

/* A descriptor with these bytes, `pad` bytes 'x' before them. */
static int file_of(const char *text, size_t pad)
{
	int fd = memfd_create("lines", MFD_CLOEXEC);
	_cleanup_free_ char *padding = malloc(pad + 1);

	memset(padding, 'x', pad);
	assert_int_equal(io_write_full(fd, padding, pad), 0);
	assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void test_whole_and_cut_lines(void **state)
{
	_cleanup_close_ int fd = file_of("one\n\nthree\ncut", 0);
	struct lines_line line;
	struct lines lines;

	assert_int_equal(lines_init(&lines, fd), 0);
	assert_int_equal(lines_next(&lines, &line), 1);
	assert_true(line.whole && line.bytes == 3 && !memcmp(line.text, "one", 3));
	assert_int_equal(lines_next(&lines, &line), 1);
	assert_true(line.whole && line.bytes == 0);
	assert_int_equal(lines_next(&lines, &line), 1);
	assert_int_equal(lines_next(&lines, &line), 1);
	assert_true(!line.whole && line.bytes == 3 && lines.number == 4);
	assert_int_equal(lines_next(&lines, &line), 0);
	assert_int_equal(lines_next(&lines, &line), 0);
	lines_done(&lines);
}

/* The long line is passed over whole, whatever its length, and the next one is intact. */
static void test_long_lines_are_passed_over(void **state)
{
	static const size_t pads[] = { LINES_MAX_BYTES - 3, LINES_MAX_BYTES + 1 - 3,
				       2 * LINES_MAX_BYTES, 5 * LINES_MAX_BYTES + 7 };

	for (size_t i = 0; i < 4; i++) {
		_cleanup_close_ int fd = file_of("end\nnext\n", pads[i]);
		struct lines_line line;
		struct lines lines;

		assert_int_equal(lines_init(&lines, fd), 0);
		assert_int_equal(lines_next(&lines, &line), 1);
		assert_int_equal(line.too_long, i > 0);
		assert_int_equal(lines_next(&lines, &line), 1);
		assert_true(!line.too_long && line.bytes == 4 && !memcmp(line.text, "next", 4));
		assert_int_equal(lines.number, 2);
		assert_int_equal(lines_next(&lines, &line), 0);
		lines_done(&lines);
	}
}

/* Many lines of odd lengths cross every place of the buffer. */
static void test_lines_across_the_buffer(void **state)
{
	_cleanup_close_ int fd = memfd_create("lines", MFD_CLOEXEC);
	_cleanup_fclose_ FILE *file = fdopen(dup(fd), "w");
	struct lines_line line;
	struct lines lines;

	for (int i = 0; i < 100000; i++)
		fprintf(file, "%d %.*s\n", i, i % 97,
			"........................................................................"
			".........................");
	fflush(file);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(lines_init(&lines, fd), 0);
	for (int i = 0; i < 100000; i++) {
		char number[16];

		snprintf(number, sizeof(number), "%d ", i);
		assert_int_equal(lines_next(&lines, &line), 1);
		assert_memory_equal(line.text, number, strlen(number));
		assert_true(line.whole && line.text[line.bytes] == '\n');
	}
	assert_int_equal(lines_next(&lines, &line), 0);
	lines_done(&lines);
}

static void test_errors_are_told(void **state)
{
	_cleanup_close_ int fd = file_of("", 0);
	struct lines_line line;
	struct lines lines;

	close(fd);
	assert_int_equal(lines_init(&lines, fd), 0);
	assert_int_equal(lines_next(&lines, &line), -EBADF);
	lines_done(&lines);
	fd = -1;
}

UNIT_TESTS(lines)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_and_cut_lines),
		cmocka_unit_test(test_long_lines_are_passed_over),
		cmocka_unit_test(test_lines_across_the_buffer),
		cmocka_unit_test(test_errors_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
