/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>

#include "consumer/unwind/cfi/cfi_section.h"
#include "tests/unit/consumer/unwind/testing/cfi_file_testing.h"

static struct frames f;

/* Reads `image`, which it frees; the result of whichever reader finds something. */
static int read_image(struct elf_image image, struct cfi_section *ret_section)
{
	struct elf_reader e;
	int r;

	assert_int_equal(elf_reader_open(&image, &e), 0);
	r = cfi_section_read(&e, ret_section);
	if (r == -ENODATA)
		r = cfi_section_read_debug(&e, ret_section);
	elf_reader_done(&e);
	free((void *)image.memory);
	return r;
}

static void fill(bool terminator)
{
	f.bytes = 0;
	frames_cie(&f, false);
	FRAMES_FDE(&f, WRAP_TEXT, 16, 0x41);
	if (terminator)
		frames_put(&f, 0, 4);
}

static void test_ways(void **state)
{
	struct cfi_section s;

	for (int way = 0; way < WRAP_WAYS; way++) {
		fill(way != WRAP_DEBUG);
		assert_int_equal(read_image(wrap(f.data, f.bytes, (enum wrap_way)way), &s), 0);
		assert_int_equal(s.debug, way == WRAP_DEBUG);
		assert_int_equal(s.bytes, f.bytes - (way == WRAP_DEBUG ? 0 : 4));
		assert_true(s.address == (s.debug ? 0 : WRAP_DATA + WRAP_FRAMES));
		assert_memory_equal(s.data, f.data, s.bytes);
		cfi_section_done(&s);
	}
}

static void test_none(void **state)
{
	struct cfi_section s;
	struct elf_image image = wrap(NULL, 0, WRAP_BY_HEADER);

	assert_int_equal(read_image(image, &s), -ENODATA);
	assert_int_equal(read_image(wrap("\0\0\0", 4, WRAP_BY_HEADER), &s), -ENODATA);
	assert_int_equal(read_image(wrap("\0\0\0", 4, WRAP_BY_NAME), &s), -ENODATA);
	fill(true);
	image = wrap(f.data, f.bytes, WRAP_BY_HEADER);
	((uint8_t *)image.memory)[WRAP_HEADER] = 2; /* an unknown version */
	assert_int_equal(read_image(image, &s), -ENODATA);
	image = wrap(f.data, f.bytes, WRAP_BY_HEADER);
	((uint8_t *)image.memory)[WRAP_HEADER + 7] = 0x70; /* outside every segment */
	assert_int_equal(read_image(image, &s), -ENODATA);
}

/*
 * Some linkers write no terminator: other things follow. A length that cannot be one ends it there;
 * in a section with a known end it is a fault.
 */
static void test_no_terminator(void **state)
{
	struct cfi_section s;
	size_t whole;

	fill(false);
	whole = f.bytes;
	frames_put(&f, CFI_ENTRY_MAX + 1, 4);
	frames_put(&f, 0x5555, 4);
	assert_int_equal(read_image(wrap(f.data, f.bytes, WRAP_BY_HEADER), &s), 0);
	assert_int_equal(s.bytes, whole);
	cfi_section_done(&s);
	assert_int_equal(read_image(wrap(f.data, f.bytes, WRAP_BY_NAME), &s), -EBADMSG);
	assert_int_equal(read_image(wrap(f.data, f.bytes, WRAP_DEBUG), &s), -EBADMSG);
	assert_int_equal(read_image(wrap("\xf0\xff\xff\xff\0\0\0", 8, WRAP_BY_HEADER), &s),
			 -EBADMSG);
	assert_int_equal(read_image(wrap("\xff\xff\xff\xff\0\0\0", 8, WRAP_BY_HEADER), &s),
			 -EBADMSG);
	assert_int_equal(read_image(wrap(f.data, whole, WRAP_BY_HEADER), &s), 0);
	assert_int_equal(s.bytes, whole);
	cfi_section_done(&s);
}

/* How many entries the header counts is a hint; for any content, they are all read. */
static void test_count(void **state)
{
	static const uint32_t counts[] = { 0, 1, 3, 100000, 1u << 30, UINT32_MAX };
	struct cfi_section s;

	fill(true);
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct elf_image image = wrap(f.data, f.bytes, WRAP_BY_HEADER);
		uint8_t *header = (uint8_t *)image.memory + WRAP_HEADER;

		header[2] = 0x03; /* the count follows, as 4 bytes */
		memcpy(header + 8, &counts[i], 4);
		assert_int_equal(read_image(image, &s), 0);
		assert_int_equal(s.bytes, f.bytes - 4);
		cfi_section_done(&s);
	}
}

/* More than is read at first, and more than the wall. */
static void test_large(void **state)
{
	size_t entry = CFI_ENTRY_MAX, count = CFI_SECTION_MAX / entry + 1;
	uint8_t *data = calloc(count, entry);
	struct cfi_section s;
	uint32_t length = (uint32_t)entry - 4;

	assert_non_null(data);
	for (size_t i = 0; i < count; i++)
		memcpy(data + i * entry, &length, 4);
	for (int way = 0; way < WRAP_WAYS; way++) {
		enum wrap_way by = (enum wrap_way)way;

		assert_int_equal(read_image(wrap(data, 3 * entry, by), &s), 0);
		assert_int_equal(s.bytes, 3 * entry);
		cfi_section_done(&s);
		assert_int_equal(read_image(wrap(data, (count - 1) * entry, by), &s), 0);
		assert_int_equal(s.bytes, CFI_SECTION_MAX);
		cfi_section_done(&s);
		assert_int_equal(read_image(wrap(data, count * entry, by), &s), -EFBIG);
	}
	length = CFI_ENTRY_MAX + 1; /* there is room for it, and yet it is none */
	memcpy(data, &length, 4);
	assert_int_equal(read_image(wrap(data, 3 * entry, WRAP_BY_NAME), &s), -EBADMSG);
	free(data);
}

UNIT_TESTS(cfi_section)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),	      cmocka_unit_test(test_none),
		cmocka_unit_test(test_no_terminator), cmocka_unit_test(test_count),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
