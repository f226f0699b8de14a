/* SPDX-License-Identifier: BSD-2-Clause */
/* jit_testing.h: this process as a runtime that writes a perf map; behind cmocka.h. */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_SYMBOLS_JIT_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_SYMBOLS_JIT_TESTING_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/runner/unit.h"

#include "shared/abi/abi.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

/* This process, as the kernel's programs would report it. */
static inline struct process_key jit_testing_self(void)
{
	struct process_key key = { .tgid = (uint32_t)getpid() };
	_cleanup_free_ char *stat = NULL;
	unsigned long long ticks;
	const char *at;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/stat", 16384, &stat, &bytes), 0);
	at = strrchr(stat, ')');
	assert_non_null(at);
	assert_int_equal(sscanf(at + 1,
				" %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
				"%*s %*s %*s %*s %*s %llu",
				&ticks),
			 1);
	key.start_ns = ticks * 10000000ULL + 1234567;
	return key;
}

/* Makes the file. */
static inline void jit_testing_write(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
}

#endif
