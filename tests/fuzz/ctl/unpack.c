/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unpack.c: a hostile compressed file: what comes out is bounded, and the same however much is
 * taken at a time. What is in no compressed form comes out as it is.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/events/unpack.h"
#include "shared/tools/cleanup.h"

#define MOST_BYTES (64u << 10) /* taken of one file */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Takes at most MOST_BYTES, `step` at a time; *ret_error is its last value. */
static size_t take(int fd, size_t step, unsigned char *out, ssize_t *ret_error)
{
	struct unpack u;
	size_t taken = 0;
	ssize_t n = 0;

	lseek(fd, 0, SEEK_SET);
	if (unpack_init(&u, fd) < 0)
		abort();
	while (taken < MOST_BYTES) {
		n = unpack_read(&u, out + taken,
				MOST_BYTES - taken < step ? MOST_BYTES - taken : step);
		if (n <= 0)
			break;
		taken += (size_t)n;
	}
	*ret_error = taken < MOST_BYTES ? n : 0;
	unpack_done(&u);
	return taken;
}

static bool is_packed(const uint8_t *data, size_t bytes)
{
	return (bytes >= 3 && !memcmp(data, "\x1f\x8b\x08", 3)) ||
	       (bytes >= 4 && !memcmp(data, "\x28\xb5\x2f\xfd", 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_free_ unsigned char *a = malloc(MOST_BYTES), *b = malloc(MOST_BYTES);
	_cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
	ssize_t a_error, b_error;
	size_t a_bytes, b_bytes;

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		abort();
	a_bytes = take(fd, MOST_BYTES, a, &a_error);
	b_bytes = take(fd, 777, b, &b_error);
	if (!is_packed(data, bytes) && (a_error || a_bytes != bytes || memcmp(a, data, bytes) != 0))
		abort();
	/* Where it is damaged, more or less of the text before may have come out. */
	if (!a_error && (b_error || a_bytes != b_bytes))
		abort();
	if (memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes) != 0)
		abort();
	return 0;
}
