/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "ctl/events/unpack.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

#define TEXT_BYTES (300u << 10)

static char *text; /* what is packed: lines that are no two alike */
static unsigned char *packed;
static size_t packed_bytes;

static int setup(void **state)
{
	size_t at = 0;

	text = malloc(TEXT_BYTES + 64);
	packed = malloc(8u << 20);
	packed_bytes = 0;
	for (int i = 0; at < TEXT_BYTES; i++)
		at += (size_t)sprintf(text + at, "%d %d\n", i, i * 7919 % 104729);
	return 0;
}

static int teardown(void **state)
{
	free(text);
	free(packed);
	return 0;
}

/* Appends a gzip member. */
static void pack_gzip(const char *data, size_t bytes)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)data;
	z.avail_in = (uInt)bytes;
	z.next_out = packed + packed_bytes;
	z.avail_out = (uInt)((8u << 20) - packed_bytes);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	packed_bytes += z.total_out;
	deflateEnd(&z);
}

/* Appends a zstd frame. */
static void pack_zstd(const char *data, size_t bytes)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	size_t n;

	ZSTD_CCtx_setParameter(z, ZSTD_c_contentSizeFlag, 0);
	n = ZSTD_compress2(z, packed + packed_bytes, (8u << 20) - packed_bytes, data, bytes);
	assert_false(ZSTD_isError(n));
	packed_bytes += n;
	ZSTD_freeCCtx(z);
}

static int file_of(const void *data, size_t bytes)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	assert_int_equal(io_write_full(fd, data, bytes), 0);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* Unpacks the packed bytes, `step` at a time; *ret_bytes came. 0 or the value of unpack_read. */
static int unpack(size_t step, char *out, size_t space, size_t *ret_bytes)
{
	_cleanup_close_ int fd = file_of(packed, packed_bytes);
	struct unpack u;
	ssize_t n;

	*ret_bytes = 0;
	assert_int_equal(unpack_init(&u, fd), 0);
	while ((n = unpack_read(&u, out + *ret_bytes % space, step)) > 0)
		*ret_bytes += (size_t)n;
	if (n == 0)
		assert_int_equal(unpack_read(&u, out, step), 0);
	unpack_done(&u);
	return (int)n;
}

static void check_whole(size_t times)
{
	static const size_t steps[] = { 1, 4096, 1u << 20 };
	_cleanup_free_ char *out = malloc(2 * TEXT_BYTES + (1u << 20) + 128);

	for (size_t i = 0; i < 3; i++) {
		size_t bytes, space = 2 * TEXT_BYTES + 64;

		assert_int_equal(unpack(steps[i], out, space, &bytes), 0);
		assert_int_equal(bytes, times * strlen(text));
		for (size_t k = 0; k < times; k++)
			assert_memory_equal(out + k * strlen(text), text, strlen(text));
	}
}

static void test_forms(void **state)
{
	pack_gzip(text, strlen(text));
	check_whole(1);
	pack_gzip(text, strlen(text)); /* as gzip appends */
	check_whole(2);
	memset(packed + packed_bytes, 0, 512);
	packed_bytes += 512;
	check_whole(2);
	packed_bytes = 0;
	pack_zstd(text, strlen(text));
	check_whole(1);
	pack_zstd(text, strlen(text));
	check_whole(2);
	memcpy(packed, text, strlen(text));
	packed_bytes = strlen(text);
	check_whole(1);
}

static void test_short(void **state)
{
	static const char *const texts[] = { "", "{", "\x1f", "\x1f\x8b", "(\xb5/", "abc\n" };
	char out[64];
	size_t bytes;

	for (size_t i = 0; i < 6; i++) {
		packed_bytes = strlen(texts[i]);
		memcpy(packed, texts[i], packed_bytes);
		assert_int_equal(unpack(7, out, sizeof(out), &bytes), 0);
		assert_int_equal(bytes, packed_bytes);
		assert_memory_equal(out, texts[i], bytes);
	}
}

/* A file that ends early has given its content, and reports it. */
static void test_cut(void **state)
{
	_cleanup_free_ char *out = malloc(TEXT_BYTES + (2u << 20));
	size_t bytes;

	pack_gzip(text, strlen(text));
	packed_bytes /= 2;
	assert_int_equal(unpack(1u << 20, out, TEXT_BYTES, &bytes), -ENODATA);
	assert_true(bytes > TEXT_BYTES / 4);
	assert_memory_equal(out, text, bytes);
	packed_bytes = 0;
	pack_zstd(text, strlen(text));
	packed_bytes /= 2;
	assert_int_equal(unpack(1u << 20, out, TEXT_BYTES, &bytes), -ENODATA);
	assert_true(bytes > TEXT_BYTES / 4);
}

static void test_damaged(void **state)
{
	_cleanup_free_ char *out = malloc(TEXT_BYTES + (2u << 20));
	size_t bytes;

	pack_gzip(text, strlen(text));
	packed[packed_bytes / 2] ^= 0x55;
	assert_int_equal(unpack(1u << 20, out, TEXT_BYTES, &bytes), -EBADMSG);
	packed[packed_bytes / 2] ^= 0x55;
	memcpy(packed + packed_bytes, "garbage", 7);
	packed_bytes += 7;
	assert_int_equal(unpack(1u << 20, out, TEXT_BYTES, &bytes), -EBADMSG);
	packed_bytes = 0;
	pack_zstd(text, strlen(text));
	memset(packed + packed_bytes / 2, 0xff, 64);
	assert_int_equal(unpack(1u << 20, out, TEXT_BYTES, &bytes), -EBADMSG);
	assert_non_null(strstr(unpack_error(-EBADMSG), "damaged"));
	assert_string_equal(unpack_error(-EIO), strerror(EIO));
}

/* A file made to fill memory or time is refused before it has done either. */
static void test_bombs(void **state)
{
	/* RFC 8878: magic, a frame without its size, a window of 2^28, an empty last block. */
	static const unsigned char far[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, (28 - 10) << 3, 1, 0, 0 };
	_cleanup_free_ char *zeroes = calloc(1, 96u << 20), *out = malloc(1u << 20);
	size_t bytes;

	pack_zstd(zeroes, 96u << 20);
	assert_true(packed_bytes < (96u << 20) / UNPACK_RATIO);
	assert_int_equal(unpack(1u << 16, out, 1u << 19, &bytes), -EFBIG);
	assert_true(bytes <= UNPACK_FREE_BYTES + (1u << 20));
	/* One that would have us hold more than the window. */
	memcpy(packed, far, sizeof(far));
	packed_bytes = sizeof(far);
	assert_int_equal(unpack(1u << 16, out, 1u << 19, &bytes), -ENOMEM);
}

static void test_read_errors(void **state)
{
	struct unpack u;
	char out[8];

	assert_int_equal(unpack_init(&u, -1), 0);
	assert_int_equal(unpack_read(&u, out, sizeof(out)), -EBADF);
	unpack_done(&u);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(unpack)
{
	const struct CMUnitTest tests[] = {
		TEST(forms), TEST(short), TEST(cut), TEST(damaged), TEST(bombs), TEST(read_errors),
	};

	return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
