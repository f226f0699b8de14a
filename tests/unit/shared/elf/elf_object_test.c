/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/elf/elf_object.h"
#include "shared/tools/cleanup.h"

/* The specimens that the build hands over, in this order. */
enum specimen { PIE, FIXED, STATIC, STRIPPED, SPECIMENS };

#define BIAS 0x7f0000000000ull /* where the file is mapped */

static char **paths;

struct {
	char before[24];
	int lock;
} object_test_variable = { "", 1 };

static int open_image(const char *path, struct elf_image *ret_image)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*ret_image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
	return fd;
}

/* An address as if the file were mapped at BIAS, with its first code as the only knowledge. */
static struct elf_object at(Elf *elf, uint64_t address)
{
	struct elf_object o = { .address = BIAS + address };
	size_t count = 0;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr p;

		gelf_getphdr(elf, (int)i, &p);
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		o.code_address = BIAS + p.p_vaddr;
		o.code_offset = p.p_offset;
	}
	return o;
}

/* Returns the begin of the data that are written, as libelf sees it. */
static uint64_t find_data(Elf *elf, uint64_t *ret_bytes)
{
	size_t count = 0;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr p;

		gelf_getphdr(elf, (int)i, &p);
		if (p.p_type == PT_LOAD && p.p_flags & PF_W) {
			*ret_bytes = p.p_memsz;
			return p.p_vaddr;
		}
	}
	fail();
	return 0;
}

/* Asks for each variable of the symbol table, at its last byte: what is named is there. */
static size_t check_variables(Elf *elf, const struct elf_image *image)
{
	uint64_t bytes = 0, data = find_data(elf, &bytes);
	Elf_Scn *section = NULL;
	size_t checked = 0;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr s;
		GElf_Sym symbol;

		gelf_getshdr(section, &s);
		if (s.sh_type != SHT_SYMTAB)
			continue;
		for (int i = 0; gelf_getsym(elf_getdata(section, NULL), i, &symbol); i++) {
			struct elf_object o = at(elf, symbol.st_value + symbol.st_size - 1);
			struct elf_object_file file;

			if (GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || !symbol.st_size ||
			    symbol.st_value < data || symbol.st_value - data >= bytes)
				continue;
			assert_int_equal(elf_object_find(image, &o, 1, &file), 0);
			assert_true(o.within && o.name[0] && o.offset < symbol.st_size);
			assert_false(file.stripped);
			checked++;
		}
	}
	return checked;
}

static void test_variables(void **state)
{
	for (int i = PIE; i <= STATIC; i++) {
		struct elf_image image;
		_cleanup_close_ int fd = open_image(paths[i], &image);
		Elf *elf = elf_begin(fd, ELF_C_READ, NULL);

		assert_non_null(elf);
		assert_true(check_variables(elf, &image) > 0);
		elf_end(elf);
	}
}

/* A file without symbols has the address, and no name for it; beside its data it has nothing. */
static void test_stripped(void **state)
{
	struct elf_image image;
	_cleanup_close_ int fd = open_image(paths[STRIPPED], &image);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	uint64_t bytes = 0, data = find_data(elf, &bytes);
	struct elf_object objects[] = { at(elf, data), at(elf, data - 1), at(elf, data + bytes) };
	struct elf_object_file file;

	assert_int_equal(elf_object_find(&image, objects, 3, &file), 0);
	assert_true(file.stripped && file.id.n > 0);
	assert_true(objects[0].within && !objects[0].name[0]);
	assert_false(objects[1].within || objects[2].within);
	objects[0].code_offset = UINT64_MAX;
	assert_int_equal(elf_object_find(&image, objects, 1, &file), 0);
	assert_false(objects[0].within);
	elf_end(elf);
}

/* This very program, by its own mappings. */
static void test_own(void **state)
{
	struct elf_object o = { .address = (uint64_t)(uintptr_t)&object_test_variable.lock };
	FILE *maps = fopen("/proc/self/maps", "re");
	_cleanup_close_ int fd = -1;
	struct elf_object_file file;
	unsigned long start, offset;
	struct elf_image image;
	char line[4096];

	assert_non_null(maps);
	while (!o.code_address && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%*x r-xp %lx", &start, &offset) == 2) {
			o.code_address = start;
			o.code_offset = offset;
		}
	fclose(maps);
	fd = open_image("/proc/self/exe", &image);
	assert_int_equal(elf_object_find(&image, &o, 1, &file), 0);
	assert_string_equal(o.name, "object_test_variable");
	assert_int_equal(o.offset, 24);
}

static void test_foreign(void **state)
{
	const uint8_t text[] = "#!/bin/sh";
	const struct elf_image image = { .fd = -1, .memory = text, .bytes = sizeof(text) };
	struct elf_object o = { .address = 1 };
	struct elf_object_file file;

	assert_int_equal(elf_object_find(&image, &o, 1, &file), -ENOEXEC);
}

UNIT_TESTS(elf_object)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_foreign),
	};

	if (argc < 1 + SPECIMENS)
		return 77;
	paths = argv + 1;
	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
