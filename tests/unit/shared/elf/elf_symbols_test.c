/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/elf/elf_symbols.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

/* The specimens that the build hands over, in this order. */
enum specimen { PIE, PACKED, FIXED, STATIC, STRIPPED, NAMELESS, UUID, SPECIMENS };

static char **paths;

static int read_path(const char *path, struct elf_symbols **ret_symbols)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image image = { .fd = fd };
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	image.bytes = (uint64_t)st.st_size;
	return elf_symbols_read(&image, NULL, ret_symbols);
}

/* One function as libelf sees it: an implementation that shares nothing with ours. */
struct expected {
	uint64_t offset;
	char *name;
};

struct oracle {
	struct expected *items;
	size_t count;
};

static int64_t file_offset(Elf *elf, uint64_t address)
{
	size_t count = 0;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr p;

		gelf_getphdr(elf, (int)i, &p);
		if (p.p_type == PT_LOAD && (p.p_flags & PF_X) && address >= p.p_vaddr &&
		    address < p.p_vaddr + p.p_filesz)
			return (int64_t)(address - p.p_vaddr + p.p_offset);
	}
	return -1;
}

static void oracle_add(struct oracle *o, uint64_t offset, const char *name)
{
	o->items = realloc(o->items, (o->count + 1) * sizeof(*o->items));
	assert_non_null(o->items);
	o->items[o->count++] = (struct expected){ .offset = offset, .name = strdup(name) };
}

static void oracle_section(struct oracle *o, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);

	for (size_t i = 0; i < header->sh_size / header->sh_entsize; i++) {
		GElf_Sym symbol;
		int64_t offset;

		gelf_getsym(data, (int)i, &symbol);
		if ((GELF_ST_TYPE(symbol.st_info) != STT_FUNC &&
		     GELF_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC) ||
		    symbol.st_shndx == SHN_UNDEF)
			continue;
		offset = file_offset(elf, symbol.st_value);
		if (offset >= 0)
			oracle_add(o, (uint64_t)offset,
				   elf_strptr(elf, header->sh_link, symbol.st_name));
	}
}

static void oracle_read(const char *path, struct oracle *o)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Elf_Scn *section = NULL;

	*o = (struct oracle){ 0 };
	assert_non_null(elf);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		gelf_getshdr(section, &header);
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			oracle_section(o, elf, section, &header);
	}
	elf_end(elf);
}

static int by_offset(const void *a, const void *b)
{
	const struct expected *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void oracle_done(struct oracle *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->items[i].name);
	free(o->items);
}

/* Every function's first byte has one of the names that libelf finds there. */
static void agree(const char *path, size_t least)
{
	struct elf_symbols *s;
	struct oracle o;

	oracle_read(path, &o);
	assert_true(o.count >= least);
	if (!o.items)
		return; /* not reached: the analyzer does not know that asserts do not return */
	qsort(o.items, o.count, sizeof(*o.items), by_offset);
	assert_int_equal(read_path(path, &s), 0);
	for (size_t i = 0, next; i < o.count; i = next) {
		uint64_t start = 0;
		const char *name = elf_symbols_find(s, o.items[i].offset, &start);
		bool found = false;

		assert_non_null(name);
		assert_int_equal(start, o.items[i].offset);
		for (next = i; next < o.count && o.items[next].offset == start; next++)
			found = found || strcmp(o.items[next].name, name) == 0;
		if (!found)
			print_error("%s: %s is not a name of 0x%jx\n", path, name,
				    (uintmax_t)start);
		assert_true(found);
	}
	elf_symbols_free(s);
	oracle_done(&o);
}

static void test_agrees_with_libelf(void **state)
{
	for (enum specimen i = PIE; i <= STATIC; i++)
		agree(paths[i], 4);
	agree("/proc/self/exe", 10);
}

static void test_agrees_on_libc(void **state)
{
	static const char *const places[] = { "/lib/x86_64-linux-gnu/libc.so.6",
					      "/lib/aarch64-linux-gnu/libc.so.6",
					      "/lib64/libc.so.6", "/usr/lib/libc.so.6" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (access(places[i], R_OK) < 0)
			continue;
		agree(places[i], 1000);
		return;
	}
	fail_msg("no libc found");
}

/* Offset of the symbol with that name, or 0. */
static size_t index_of(const struct elf_symbols *s, const char *name)
{
	for (size_t i = 0; i < s->names.count; i++)
		if (strcmp(name_table_text(&s->names, i), name) == 0)
			return i;
	fail_msg("%s is not there", name);
	return 0;
}

static void test_kinds(void **state)
{
	struct elf_symbols *s;
	uint64_t start;
	size_t i;

	assert_int_equal(read_path(paths[PIE], &s), 0);
	assert_int_equal(s->id.n, 20);
	index_of(s, "specimen_local");
	index_of(s, "main");
	i = index_of(s, "specimen_untyped");
	assert_string_equal(elf_symbols_find(s, s->names.keys[i] + 2, &start), "specimen_untyped");
	i = index_of(s, "specimen_labelled");
	assert_string_equal(elf_symbols_find(s, s->names.keys[i] + 2, &start), "specimen_labelled");
	assert_int_equal(start, s->names.keys[i]);
	assert_null(elf_symbols_find(s, 0, &start));
	assert_null(elf_symbols_find(s, UINT64_MAX, &start));
	elf_symbols_free(s);
}

static void test_stripped(void **state)
{
	struct elf_symbols *s;

	assert_int_equal(read_path(paths[STRIPPED], &s), 0);
	for (size_t i = 0; i < s->names.count; i++)
		assert_null(strstr(name_table_text(&s->names, i), "specimen_local"));
	assert_int_equal(s->id.n, 20);
	elf_symbols_free(s);
	assert_int_equal(read_path(paths[NAMELESS], &s), 0);
	assert_int_equal(s->id.n, 0);
	elf_symbols_free(s);
	assert_int_equal(read_path(paths[UUID], &s), 0);
	assert_int_equal(s->id.n, 16);
	elf_symbols_free(s);
}

static void test_memory_is_the_same(void **state)
{
	_cleanup_free_ char *data = NULL;
	struct elf_image image = { .fd = -1 };
	struct elf_symbols *a, *b;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &data, &bytes), 0);
	image.memory = (const uint8_t *)data;
	image.bytes = bytes;
	assert_int_equal(elf_symbols_read(&image, NULL, &a), 0);
	assert_int_equal(read_path(paths[PIE], &b), 0);
	assert_int_equal(a->names.count, b->names.count);
	assert_memory_equal(a->names.keys, b->names.keys, a->names.count * sizeof(uint32_t));
	assert_memory_equal(&a->id, &b->id, sizeof(a->id));
	elf_symbols_free(a);
	elf_symbols_free(b);
}

/* Reads a changed copy of the first specimen. */
static int read_changed(void (*change)(uint8_t *data, size_t *bytes), struct elf_symbols **ret_s)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_free_ uint8_t *exact = NULL;
	struct elf_image image = { .fd = -1 };
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &data, &bytes), 0);
	change((uint8_t *)data, &bytes);
	exact = malloc(bytes + 1);
	assert_non_null(exact);
	memcpy(exact, data, bytes);
	image.memory = exact;
	image.bytes = bytes;
	return elf_symbols_read(&image, NULL, ret_s);
}

static Elf64_Shdr *section(uint8_t *data, uint32_t type)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(data + header->e_shoff);

	for (size_t i = 0; i < header->e_shnum; i++)
		if (sections[i].sh_type == type)
			return &sections[i];
	fail_msg("no section of type %u", type);
	return NULL;
}

/* The string table of the first specimen's .symtab. */
static Elf64_Shdr *names_section(uint8_t *data)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(data + header->e_shoff);

	return &sections[section(data, SHT_SYMTAB)->sh_link];
}

static void cut_header(uint8_t *data, size_t *bytes)
{
	*bytes = 40;
}

static void cut_half(uint8_t *data, size_t *bytes)
{
	*bytes /= 2;
}

static void other_order(uint8_t *data, size_t *bytes)
{
	data[EI_DATA] = data[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
}

static void other_magic(uint8_t *data, size_t *bytes)
{
	data[0] = '#';
}

static void lying_size(uint8_t *data, size_t *bytes)
{
	section(data, SHT_SYMTAB)->sh_size = UINT64_MAX;
}

static void lying_offset(uint8_t *data, size_t *bytes)
{
	section(data, SHT_SYMTAB)->sh_offset = UINT64_MAX - 8;
}

static void lying_link(uint8_t *data, size_t *bytes)
{
	section(data, SHT_SYMTAB)->sh_link = UINT32_MAX;
}

static void no_entry_size(uint8_t *data, size_t *bytes)
{
	section(data, SHT_SYMTAB)->sh_entsize = 0;
}

static void lying_strings(uint8_t *data, size_t *bytes)
{
	names_section(data)->sh_size = UINT64_MAX;
}

static void lying_sections(uint8_t *data, size_t *bytes)
{
	((Elf64_Ehdr *)(void *)data)->e_shoff = UINT64_MAX - 3;
}

static void many_segments(uint8_t *data, size_t *bytes)
{
	((Elf64_Ehdr *)(void *)data)->e_phnum = UINT16_MAX;
}

static void unended_strings(uint8_t *data, size_t *bytes)
{
	memset(data + names_section(data)->sh_offset, 'x', names_section(data)->sh_size);
}

static void test_hostile(void **state)
{
	static const struct {
		void (*change)(uint8_t *data, size_t *bytes);
		int r;
	} rows[] = {
		{ cut_header, -ENOEXEC },    { cut_half, -EBADMSG },
		{ other_order, -ENOEXEC },   { other_magic, -ENOEXEC },
		{ lying_size, -EBADMSG },    { lying_offset, -EBADMSG },
		{ lying_link, -EBADMSG },    { no_entry_size, -EBADMSG },
		{ lying_strings, -EBADMSG }, { lying_sections, -EBADMSG },
		{ many_segments, -EFBIG },
	};
	struct elf_symbols *s = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(read_changed(rows[i].change, &s), rows[i].r);
	assert_null(s);
	assert_int_equal(read_changed(unended_strings, &s), 0);
	for (size_t i = 0; i < s->names.count; i++)
		assert_true(strlen(name_table_text(&s->names, i)) < NAME_TABLE_TEXT_BYTES);
	elf_symbols_free(s);
}

/* Cut at every byte: never more than an error. */
static void test_every_length(void **state)
{
	_cleanup_free_ char *data = NULL;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &data, &bytes), 0);
	for (size_t length = 0; length < bytes; length += length < 1024 ? 1 : 97) {
		struct elf_image image = { .fd = -1, .memory = (uint8_t *)data, .bytes = length };
		struct elf_symbols *s = NULL;

		if (elf_symbols_read(&image, NULL, &s) == 0)
			elf_symbols_free(s);
	}
}

static void test_shrinking_file(void **state)
{
	char path[] = "/tmp/elf_test.XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	struct elf_image image = { .fd = fd, .bytes = 1 << 20 };
	_cleanup_free_ char *data = NULL;
	struct elf_symbols *s;
	size_t bytes;

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &data, &bytes), 0);
	assert_int_equal(io_write_full(fd, data, 4096), 0);
	assert_int_equal(elf_symbols_read(&image, NULL, &s), -EBADMSG);
}

#define SPARSE_BYTES (1ULL << 30)

/*
 * A sparse file with tables that claim a gigabyte costs no more than the limits, and has its names.
 */
static void test_huge_claims(void **state)
{
	_cleanup_free_ char *data = NULL;
	char path[] = "/tmp/elf_test.XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	struct elf_image image = { .fd = fd, .bytes = SPARSE_BYTES };
	struct elf_symbols *s;
	Elf64_Shdr *symbols, *strings;
	Elf64_Shdr table;
	size_t bytes;

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &data, &bytes), 0);
	symbols = section((uint8_t *)data, SHT_SYMTAB);
	strings = names_section((uint8_t *)data);
	table = *symbols;
	/* A million symbols that are no functions, behind those that are. */
	symbols->sh_offset = SPARSE_BYTES / 2;
	symbols->sh_size = (ELF_SYMBOLS_MAX + 1) * sizeof(Elf64_Sym);
	assert_int_equal(io_write_full(fd, data, bytes), 0);
	assert_int_equal(ftruncate(fd, (off_t)SPARSE_BYTES), 0);
	assert_int_equal(
		pwrite(fd, data + table.sh_offset, table.sh_size, (off_t)symbols->sh_offset),
		table.sh_size);
	assert_int_equal(elf_symbols_read(&image, NULL, &s), 0);
	assert_false(s->cut);
	index_of(s, "specimen_local");
	elf_symbols_free(s);
	/* More of them than are read at all. */
	symbols->sh_size = SPARSE_BYTES / 2 / sizeof(Elf64_Sym) * sizeof(Elf64_Sym);
	assert_int_equal(pwrite(fd, data, bytes, 0), bytes);
	assert_int_equal(elf_symbols_read(&image, NULL, &s), 0);
	assert_true(s->cut);
	index_of(s, "specimen_local");
	elf_symbols_free(s);
	/* More names than are read. */
	symbols->sh_size = table.sh_size;
	strings->sh_size = SPARSE_BYTES - strings->sh_offset;
	assert_int_equal(pwrite(fd, data, bytes, 0), bytes);
	assert_int_equal(elf_symbols_read(&image, NULL, &s), 0);
	index_of(s, "specimen_local");
	assert_true(elf_symbols_bytes(s) < ELF_STRINGS_MAX);
	elf_symbols_free(s);
}

static void test_build_id_alone(void **state)
{
	_cleanup_close_ int fd = open(paths[PIE], O_RDONLY | O_CLOEXEC);
	struct elf_image image = { .fd = fd };
	struct elf_symbols *s;
	struct build_id id;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	image.bytes = (uint64_t)st.st_size;
	assert_int_equal(build_id_read_mapped(&image, &id), 0);
	assert_int_equal(read_path(paths[PIE], &s), 0);
	assert_true(build_id_same(&id, &s->id));
	assert_int_equal(id.address, s->id.address);
	elf_symbols_free(s);
}

UNIT_TESTS(elf_symbols)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_libelf),
		cmocka_unit_test(test_agrees_on_libc),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_memory_is_the_same),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_shrinking_file),
		cmocka_unit_test(test_huge_claims),
		cmocka_unit_test(test_build_id_alone),
	};

	if (argc != 1 + SPECIMENS) {
		fprintf(stderr, "usage: %s SPECIMEN...\n", argv[0]);
		return 2;
	}
	paths = argv + 1;
	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
