/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <sys/mman.h>

#include "ctl/build_id.h"
#include "shared/cleanup.h"
#include "shared/io.h"
#include "shared/macro.h"
#include "tests/unit/ctl/specimens.h"

static void test_of_real_files(void **state)
{
	static const struct {
		const char *name;
		bool code;
	} files[] = { { "pie.full", true }, { "pie.stripped", true }, { "pie.debug", false } };
	struct specimens_facts facts = { 0 };
	struct build_id id;

	assert_true(specimens_facts("pie", &facts));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_close_ int fd = specimens_open(files[i].name);

		assert_int_equal(build_id_read(fd, &id), 0);
		assert_true(build_id_is(&id, facts.id, strlen(facts.id)));
		assert_int_equal(id.code, files[i].code);
	}
	assert_false(build_id_is(&id, facts.id, strlen(facts.id) - 2));
	facts.id[3] = facts.id[3] == 'a' ? 'b' : 'a';
	assert_false(build_id_is(&id, facts.id, strlen(facts.id)));
}

static void test_without(void **state)
{
	_cleanup_close_ int fd = specimens_open("nameless.full");
	struct build_id id;

	assert_true(fd >= 0);
	assert_int_equal(build_id_read(fd, &id), -ENODATA);
}

/* Reads `bytes` bytes as a file. */
static int read_bytes(const void *data, size_t bytes, struct build_id *id)
{
	_cleanup_close_ int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_int_equal(io_write_full(fd, data, bytes), 0);
	return build_id_read(fd, id);
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

/* Lies cost an error, never a byte beyond what is there. */
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
	s.header.e_phnum = BUILD_ID_SEGMENTS_MAX + 1;
	assert_int_equal(read_bytes(&s, sizeof(s), &id), -EBADMSG);
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

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_real_files),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_by_segment_alone),
		cmocka_unit_test(test_lies),
	};

	specimens_dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
