/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed .debug_frame: as Go writes it, as it wrote it once, and hostile. */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <zlib.h>

#include "consumer/unwind/cfi/cfi_inflate.h"
#include "consumer/unwind/cfi/cfi_section.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/unwind/testing/cfi_file_testing.h"

#define OLD_NAME 24 /* of .zdebug_frame in WRAP_NAMES */

static struct frames f;

static void fill(void)
{
	f.bytes = 0;
	frames_cie(&f, false);
	for (uint32_t i = 0; i < 100; i++)
		FRAMES_FDE(&f, WRAP_TEXT + 16 * i, 16, 0x41);
}

/* A file with these frames compressed, which claims a length and a method; free image.memory. */
static struct elf_image pack(const void *data, size_t bytes, uint64_t claimed, uint32_t method)
{
	Elf64_Chdr h = { .ch_type = method, .ch_size = claimed, .ch_addralign = 1 };
	uLongf packed = compressBound(bytes);
	uint8_t *section = malloc(sizeof(h) + packed);
	struct elf_image image;

	assert_non_null(section);
	memcpy(section, &h, sizeof(h));
	assert_int_equal(compress(section + sizeof(h), &packed, data, bytes), Z_OK);
	image = wrap(section, sizeof(h) + packed, WRAP_DEBUG);
	wrapped_section(&image)->sh_flags = SHF_COMPRESSED;
	free(section);
	return image;
}

static int read_packed(struct elf_image image, struct cfi_section *ret_section)
{
	struct elf_reader e;
	int r;

	*ret_section = (struct cfi_section){ 0 };
	assert_int_equal(elf_reader_open(&image, &e), 0);
	r = cfi_section_read_debug(&e, ret_section);
	elf_reader_done(&e);
	free((void *)image.memory);
	return r;
}

static void expect_entries(const struct cfi_section *s)
{
	assert_int_equal(s->bytes, f.bytes);
	assert_memory_equal(s->data, f.data, f.bytes);
	assert_true(s->debug);
	assert_int_equal(s->address, 0);
}

static void test_zlib(void **state)
{
	struct cfi_section s;

	fill();
	assert_int_equal(read_packed(pack(f.data, f.bytes, f.bytes, ELFCOMPRESS_ZLIB), &s), 0);
	expect_entries(&s);
	cfi_section_done(&s);
}

/* The form of before gABI had one: binutils with --compress-debug-sections=zlib-gnu, Go to 1.18. */
static void test_old_form(void **state)
{
	uint8_t section[1 << 16] = "ZLIB";
	uLongf packed = sizeof(section) - 12;
	struct elf_image image;
	struct cfi_section s;

	fill();
	section[10] = (uint8_t)(f.bytes >> 8);
	section[11] = (uint8_t)f.bytes;
	assert_int_equal(compress(section + 12, &packed, f.data, f.bytes), Z_OK);
	for (int broken = 0; broken < 2; broken++) {
		section[0] = broken ? 'Y' : 'Z';
		image = wrap(section, 12 + packed, WRAP_DEBUG);
		wrapped_section(&image)->sh_name = OLD_NAME;
		assert_int_equal(read_packed(image, &s), broken ? -EBADMSG : 0);
		if (!broken)
			expect_entries(&s);
		cfi_section_done(&s);
	}
}

/* Another method, with its reason: zstd, and one that does not exist. */
static void test_other_methods(void **state)
{
	struct cfi_section s;

	fill();
	for (uint32_t method = 2; method < 4; method++)
		assert_int_equal(read_packed(pack(f.data, f.bytes, f.bytes, method), &s),
				 -EPROTONOSUPPORT);
}

/* Lengths that the content has not, a bomb, a claim beyond the wall, and cut and changed bytes. */
static void test_hostile(void **state)
{
	static uint8_t zeros[4 << 20];
	struct elf_image image;
	struct cfi_section s;

	fill();
	for (int i = -1; i <= 1; i += 2)
		assert_int_equal(
			read_packed(pack(f.data, f.bytes, f.bytes + (uint64_t)i, ELFCOMPRESS_ZLIB),
				    &s),
			-EBADMSG);
	/* 4 MiB from 4 KiB: no more than is claimed is ever written. */
	assert_int_equal(read_packed(pack(zeros, sizeof(zeros), 1000, ELFCOMPRESS_ZLIB), &s),
			 -EBADMSG);
	assert_int_equal(
		read_packed(pack(f.data, f.bytes, (32u << 20) + 1ull, ELFCOMPRESS_ZLIB), &s),
		-EFBIG);
	assert_int_equal(read_packed(pack(f.data, f.bytes, UINT64_MAX, ELFCOMPRESS_ZLIB), &s),
			 -EFBIG);
	assert_int_equal(read_packed(pack("", 0, 0, ELFCOMPRESS_ZLIB), &s), -ENODATA);
	for (uint64_t cut = 0; cut < 60; cut++) {
		image = pack(f.data, f.bytes, f.bytes, ELFCOMPRESS_ZLIB);
		wrapped_section(&image)->sh_size = cut;
		assert_int_equal(read_packed(image, &s), -EBADMSG);
	}
	image = pack(f.data, f.bytes, f.bytes, ELFCOMPRESS_ZLIB);
	((uint8_t *)image.memory)[WRAP_FRAMES + sizeof(Elf64_Chdr) + 20] ^= 0x55;
	assert_int_equal(read_packed(image, &s), -EBADMSG);
	image = pack(f.data, f.bytes, f.bytes, ELFCOMPRESS_ZLIB);
	wrapped_section(&image)->sh_size = (32u << 20) + 1ull;
	assert_int_equal(read_packed(image, &s), -EFBIG);
	image = pack(f.data, f.bytes, f.bytes, ELFCOMPRESS_ZLIB);
	wrapped_section(&image)->sh_offset = UINT64_MAX - 8;
	assert_int_equal(read_packed(image, &s), -EBADMSG);
	/* Whole, but no call frame information. */
	assert_int_equal(read_packed(pack("\xf0\xff\xff\xff????", 8, 8, ELFCOMPRESS_ZLIB), &s),
			 -EBADMSG);
}

UNIT_TESTS(cfi_inflate)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zlib),
		cmocka_unit_test(test_old_form),
		cmocka_unit_test(test_other_methods),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
