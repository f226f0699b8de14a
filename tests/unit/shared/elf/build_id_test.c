/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <elf.h>
#include <errno.h>

#include "shared/elf/build_id.h"
#include "tests/unit/shared/elf/elf_testing.h"

/* The hex digits that readelf(1) prints, by make_specimens. */
static void read_digits(char digits[2 * BUILD_ID_BYTES_MAX + 2])
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "split.id");
	ssize_t n = read(image.fd, digits, (size_t)2 * BUILD_ID_BYTES_MAX + 1);

	close(image.fd);
	assert_true(n > 1);
	digits[n - 1] = '\0'; /* the newline */
}

static void test_of_real_files(void **state)
{
	static const struct {
		const char *name;
		bool code;
	} files[] = { { "split.whole", true }, { "split", true }, { "split.debug", false } };
	char digits[2 * BUILD_ID_BYTES_MAX + 2];
	struct build_id id = { 0 };

	read_digits(digits);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct elf_image image = elf_testing_open(elf_testing_folder, files[i].name);

		assert_int_equal(build_id_read(&image, &id), 0);
		assert_true(build_id_is(&id, digits, strlen(digits)));
		assert_int_equal(id.code, files[i].code);
		close(image.fd);
	}
	assert_false(build_id_is(&id, digits, strlen(digits) - 2));
	digits[3] = digits[3] == 'a' ? 'b' : 'a';
	assert_false(build_id_is(&id, digits, strlen(digits)));
}

static void test_without(void **state)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "split_crc.whole");
	struct build_id id;

	assert_int_equal(build_id_read(&image, &id), -ENODATA);
	assert_int_equal(build_id_read_mapped(&image, &id), 0);
	assert_int_equal(id.n, 0);
	assert_false(build_id_same(&id, &id));
	close(image.fd);
}

/* Reads `bytes` bytes as a file. */
static int read_bytes(const void *data, size_t bytes, struct build_id *ret_id)
{
	const struct elf_image image = { .fd = -1, .memory = data, .bytes = bytes };

	return build_id_read(&image, ret_id);
}

/* A file with one segment of notes at 64 + 56. */
struct small {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	struct {
		Elf64_Nhdr head;
		char name[4], text[8];
	} note;
};

static struct small small_file(void)
{
	struct small s = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_phoff = offsetof(struct small, segment),
			    .e_phnum = 1,
			    .e_phentsize = sizeof(Elf64_Phdr) },
		.segment = { .p_type = PT_NOTE,
			     .p_offset = offsetof(struct small, note),
			     .p_filesz = sizeof(s.note) },
		.note = { { 4, 8, NT_GNU_BUILD_ID }, "GNU", "12345678" },
	};

	return s;
}

static void test_by_segment_alone(void **state)
{
	struct small s = small_file();
	struct build_id id;

	assert_int_equal(read_bytes(&s, sizeof(s), &id), 0);
	assert_int_equal(id.n, 8);
	assert_memory_equal(id.bytes, "12345678", 8);
}

/* What eu-strip(1) splits off: its segments are those of the program, its sections its own. */
static void test_segments_of_another_file(void **state)
{
	struct {
		struct small file;
		Elf64_Shdr section;
		struct {
			Elf64_Nhdr head;
			char name[4], text[8];
		} note;
	} s = { .file = small_file(),
		.section = { .sh_type = SHT_NOTE,
			     .sh_offset = sizeof(s.file) + sizeof(s.section),
			     .sh_size = sizeof(s.note),
			     .sh_addralign = 4 },
		.note = { { 4, 8, NT_GNU_BUILD_ID }, "GNU", "abcdefgh" } };
	const struct elf_image image = { .memory = (const uint8_t *)&s, .bytes = sizeof(s) };
	struct build_id id;

	s.file.header.e_shoff = sizeof(s.file);
	s.file.header.e_shnum = 1;
	s.file.header.e_shentsize = sizeof(Elf64_Shdr);
	assert_int_equal(read_bytes(&s, sizeof(s), &id), 0);
	assert_memory_equal(id.bytes, "abcdefgh", 8);
	assert_int_equal(build_id_read_mapped(&image, &id), 0);
	assert_memory_equal(id.bytes, "12345678", 8);
}

/* eu-strip(1) leaves broken note sections: the next one counts. */
static void test_section_outside(void **state)
{
	struct {
		struct small file;
		Elf64_Shdr sections[2];
	} s = { .file = small_file(),
		.sections = { { .sh_type = SHT_NOTE, .sh_offset = 1 << 20, .sh_size = 24 },
			      { .sh_type = SHT_NOTE,
				.sh_offset = offsetof(struct small, note),
				.sh_size = sizeof(s.file.note) } } };
	struct build_id id;

	s.file.segment.p_type = PT_LOAD;
	s.file.header.e_shoff = sizeof(s.file);
	s.file.header.e_shnum = 2;
	s.file.header.e_shentsize = sizeof(Elf64_Shdr);
	assert_int_equal(read_bytes(&s, sizeof(s), &id), 0);
	assert_memory_equal(id.bytes, "12345678", 8);
	s.file.header.e_shnum = 1;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -ENODATA);
}

/* Lies cost an error, never a byte beyond the file. */
static void test_lies(void **state)
{
	struct build_id id;
	struct small s;

	s = small_file();
	s.header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -ENOEXEC);
	assert_int_equal(read_bytes("#!/bin/sh", 9, &id), -ENOEXEC);
	s = small_file();
	s.header.e_phoff = UINT64_MAX - 3;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -EBADMSG);
	s = small_file();
	s.header.e_phnum = ELF_SEGMENTS_MAX + 1;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -EFBIG);
	s = small_file();
	s.segment.p_filesz = BUILD_ID_NOTE_MAX;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -EBADMSG);
	s = small_file();
	s.note.head.n_descsz = UINT32_MAX;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -ENODATA);
	s = small_file();
	s.note.head.n_namesz = 5;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -ENODATA);
	s = small_file();
	s.header.e_shoff = sizeof(s);
	s.header.e_shnum = 3;
	s.header.e_shentsize = sizeof(Elf64_Shdr);
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -EBADMSG);
	assert_int_equal(read_bytes(&s, sizeof(s.header) - 1, &id), -EBADMSG);
}

UNIT_TESTS(build_id)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_real_files),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_by_segment_alone),
		cmocka_unit_test(test_segments_of_another_file),
		cmocka_unit_test(test_section_outside),
		cmocka_unit_test(test_lies),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
