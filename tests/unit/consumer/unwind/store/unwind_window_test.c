/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/unwind/testing/own_program_testing.h"

#include <errno.h>

#include "consumer/unwind/store/unwind_window.h"

#define BYTES 20000

/* Any part, across pages, is the same memory as the whole. */
static void test_parts(void **state)
{
	struct unwind_window w = { 0 };
	uint8_t *whole;
	int fd = own_memory(BYTES, (void **)&whole);

	for (size_t at = 0; at < BYTES - 5000; at += 1111) {
		assert_int_equal(unwind_window_open(fd, at, 5000, &w), 0);
		memset(w.at, (int)at / 1111 + 1, 5000);
		unwind_window_close(&w);
		assert_null(w.pages);
		assert_int_equal(whole[at], at / 1111 + 1);
		assert_int_equal(whole[at + 4999], at / 1111 + 1);
		assert_int_equal(whole[at + 5000], 0);
	}
	unwind_window_close(&w);
	munmap(whole, BYTES);
	close(fd);
	assert_int_equal(unwind_window_open(fd, 0, 10, &w), -EBADF);
	assert_null(w.pages);
}

UNIT_TESTS(unwind_window)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_parts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
