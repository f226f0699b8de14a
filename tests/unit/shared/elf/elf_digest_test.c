/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_digest_test.c: copies have one digest, and any relevant change gives another. */
#include "tests/unit/runner/unit.h"

#include <errno.h>

#include "shared/elf/elf_digest.h"
#include "shared/tools/io.h"
#include "tests/unit/shared/elf/elf_testing.h"

static uint64_t digest_of(const uint8_t *data, size_t bytes, enum elf_digest_of of)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };
	uint64_t digest = 0;

	assert_int_equal(elf_digest_read(&image, of, &digest), 0);
	assert_true(digest != 0);
	return digest;
}

/* Returns where the first section of that name is. */
static uint64_t place_of(const uint8_t *data, size_t bytes, const char *name)
{
	struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };
	const Elf64_Shdr *s;
	struct elf_reader e;
	uint64_t at;

	assert_int_equal(elf_reader_open(&image, &e), 0);
	assert_int_equal(elf_reader_sections(&e), 0);
	assert_int_equal(elf_reader_find(&e, name, &s), 0);
	at = s->sh_offset + s->sh_size / 2;
	elf_reader_done(&e);
	return at;
}

static void test_changes(void **state)
{
	static const struct {
		const char *section;
		bool names, rows; /* the digest that decides */
	} parts[] = {
		{ ".symtab", true, false },	  { ".strtab", true, false },
		{ ".dynstr", true, false },	  { ".eh_frame", false, true },
		{ ".eh_frame_hdr", false, true }, { ".text", false, true },
		{ ".comment", false, false },
	};
	_cleanup_free_ char *data = NULL;
	uint64_t names, rows;
	char path[PATH_MAX];
	size_t bytes;

	assert_true(snprintf(path, sizeof(path), "%s/plt_lazy", elf_testing_folder) < PATH_MAX);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 20, &data, &bytes), 0);
	names = digest_of((uint8_t *)data, bytes, ELF_DIGEST_NAMES);
	rows = digest_of((uint8_t *)data, bytes, ELF_DIGEST_ROWS);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		uint64_t at = place_of((uint8_t *)data, bytes, parts[i].section);

		data[at] ^= 1;
		assert_true((digest_of((uint8_t *)data, bytes, ELF_DIGEST_NAMES) != names) ==
			    parts[i].names);
		assert_true((digest_of((uint8_t *)data, bytes, ELF_DIGEST_ROWS) != rows) ==
			    parts[i].rows);
		data[at] ^= 1;
	}
	data[offsetof(Elf64_Ehdr, e_entry)] ^= 1;
	assert_true(digest_of((uint8_t *)data, bytes, ELF_DIGEST_NAMES) != names);
	assert_true(digest_of((uint8_t *)data, bytes, ELF_DIGEST_ROWS) != rows);
	data[offsetof(Elf64_Ehdr, e_entry)] ^= 1;
	assert_true(digest_of((uint8_t *)data, bytes, ELF_DIGEST_NAMES) == names);
}

static void test_broken(void **state)
{
	static const uint8_t none[64];
	struct elf_image image = { .fd = -1, .memory = none, .bytes = sizeof(none) };
	uint64_t digest;

	assert_int_equal(elf_digest_read(&image, ELF_DIGEST_NAMES, &digest), -ENOEXEC);
}

UNIT_TESTS(elf_digest)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_broken),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
