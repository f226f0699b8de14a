/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_fdes_test.c: where functions begin and end by .eh_frame_hdr, and tables that are broken. */
#include "tests/unit/runner/unit.h"

#include <errno.h>

#include "shared/elf/elf_fdes.h"
#include "tests/unit/shared/elf/elf_testing.h"

/* Finds a function by its symbol; all specimens have their code at address minus `*ret_bias`. */
static uint64_t address_of(const struct elf_reader *e, const char *name, uint64_t *ret_bytes)
{
	struct elf_symbols *s = elf_testing_read("split.whole");
	ptrdiff_t at = elf_testing_place_of(s, name);
	uint64_t address;

	assert_true(at >= 0);
	assert_true(elf_reader_address(e, s->names.keys[at], &address));
	*ret_bytes = s->names.sizes[at];
	elf_symbols_free(s);
	return address;
}

/* Every function of C has an FDE of its size, also in the stripped file. */
static void test_functions(void **state)
{
	static const char *const names[] = { "main", "specimen_local" };
	struct elf_image image = elf_testing_open(elf_testing_folder, "split");
	struct elf_fdes fdes;
	struct elf_reader e;

	assert_int_equal(elf_reader_open(&image, &e), 0);
	assert_int_equal(elf_fdes_read(&e, &fdes), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint64_t bytes, at = address_of(&e, names[i], &bytes);

		assert_int_equal(elf_fdes_end(&fdes, &e, at), at + bytes);
		assert_int_equal(elf_fdes_end(&fdes, &e, at + bytes - 1), at + bytes);
		assert_int_equal(elf_fdes_next(&fdes, at - 1), at);
		assert_true(elf_fdes_next(&fdes, at) >= at + bytes ||
			    elf_fdes_next(&fdes, at) == 0);
	}
	assert_int_equal(elf_fdes_end(&fdes, &e, 0), 0);
	assert_int_equal(elf_fdes_end(&fdes, &e, UINT64_MAX), 0);
	assert_int_equal(elf_fdes_next(&fdes, UINT64_MAX), 0);
	elf_fdes_done(&fdes);
	elf_reader_done(&e);
	close(image.fd);
}

/* A file of one header, one FDE and the table of one row that names it. */
struct file {
	uint8_t version, pointer_kind, count_kind, table_kind;
	int32_t pointer;
	uint32_t count;
	int32_t row[2];
	uint32_t bytes, cie;
	int32_t start;
	uint32_t length;
};

#define BASE 0x1000

static const struct file good = {
	.version = 1,
	.pointer_kind = 0x1b,
	.count_kind = 0x03,
	.table_kind = 0x3b,
	.count = 1,
	.row = { 0x500, offsetof(struct file, bytes) },
	.bytes = 12,
	.start = 0x500 - (int32_t)offsetof(struct file, start),
	.length = 0x20,
};

/* Reads the table of `f`. Returns the end of the FDE at BASE + 0x500, or -errno. */
static int64_t read_end(const struct file *f, uint64_t filesz)
{
	struct elf_image image = { .fd = -1, .memory = (const uint8_t *)f, .bytes = sizeof(*f) };
	Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = sizeof(*f) },
		{ .p_type = PT_GNU_EH_FRAME, .p_vaddr = BASE, .p_filesz = filesz },
	};
	struct elf_reader e = { .image = &image, .segments = segments, .segment_count = 2 };
	struct elf_fdes fdes;
	int64_t end;
	int r;

	r = elf_fdes_read(&e, &fdes);
	if (r < 0)
		return r;
	end = (int64_t)elf_fdes_end(&fdes, &e, BASE + 0x500);
	elf_fdes_done(&fdes);
	return end;
}

static void test_broken(void **state)
{
	const uint64_t whole = offsetof(struct file, bytes);
	struct file f = good;

	assert_int_equal(read_end(&f, whole), BASE + 0x520);
	assert_int_equal(read_end(&f, whole - 1), -EBADMSG);
	assert_int_equal(read_end(&f, 11), -ENODATA);
	f.start++; /* in another encoding, or of another function */
	assert_int_equal(read_end(&f, whole), 0);
	f = good;
	f.row[1] = 0x7fffffff;
	assert_int_equal(read_end(&f, whole), 0);
	f = good;
	f.table_kind = 0x3c;
	assert_int_equal(read_end(&f, whole), -ENODATA);
	f = good;
	f.version = 2;
	assert_int_equal(read_end(&f, whole), -ENODATA);
	f = good;
	f.count = 0;
	assert_int_equal(read_end(&f, whole), -ENODATA);
	f.count = 2;
	assert_int_equal(read_end(&f, whole), -EBADMSG);
	f.count = ELF_FDES_MAX + 1;
	assert_int_equal(read_end(&f, whole), -EFBIG);
}

UNIT_TESTS(elf_fdes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_broken),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
