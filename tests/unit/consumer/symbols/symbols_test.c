/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "consumer/symbols/symbols.h"
#include "shared/elf/elf_symbols.h"
#include "shared/elf/reason.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "tests/unit/consumer/symbols/records_testing.h"
#include "tests/unit/consumer/symbols/specimen_testing.h"

enum specimen { PIE, STRIPPED, UUID, SPECIMENS };

static char *paths[SPECIMENS];

static void test_user(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *m = module_of(s, paths[PIE]);
	struct symbols_stats stats;
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "specimen_local", &size);

	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "specimen_local");
	assert_null(name.reason);
	assert_int_equal(name.offset_in_fn, 0);
	assert_int_equal(symbols_user(s, m, offset + size, true, &name), 0);
	assert_string_equal(name.fn, "specimen_local");
	assert_int_equal(name.offset_in_fn, size);
	/* No call stands before its first byte: it was entered there. */
	assert_int_equal(symbols_user(s, m, offset, true, &name), 0);
	assert_string_equal(name.fn, "specimen_local");
	assert_int_equal(name.offset_in_fn, 0);
	expect_why(s, m, "no_symbol");
	assert_int_equal(m->build_id_bytes, 20);
	symbols_stats(s, &stats);
	assert_int_equal(stats.files_read, 1);
	assert_int_equal(stats.lookups, 4);
	assert_int_equal(stats.unnamed, 1);
	assert_true(stats.bytes > 0 && stats.symbols > 4);
	symbols_free(s);
}

static void test_readable(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *m = module_of(s, paths[PIE]);
	struct symbols_stats stats, after;
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "_ZN8specimen6methodEi", &size);

	assert_int_equal(symbols_user(s, m, 64, false, &name), -ENOENT);
	symbols_stats(s, &stats);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "specimen::method");
	assert_string_equal(name.raw, "_ZN8specimen6methodEi");
	symbols_stats(s, &after);
	assert_true(after.bytes > stats.bytes);
	assert_int_equal(symbols_user(s, m, offset_of(paths[PIE], "main", &size), false, &name), 0);
	assert_string_equal(name.fn, "main");
	assert_null(name.raw);
	symbols_free(s);
}

static void test_reasons(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *m;

	expect_why(s, module_of(s, "/dev/null"), "not_regular");
	expect_why(s, module_of(s, "/proc/self/status"), "not_elf");
	assert_int_equal(symbols_module(s, &(struct file_identity){ .device = 1, .inode = 1 },
					"/nonexistent", false, &m),
			 0);
	expect_why(s, m, "no_file");
	assert_int_equal(symbols_module(s, &(struct file_identity){ .device = 1, .inode = 1 },
					paths[PIE], false, &m),
			 0);
	expect_why(s, m, "other_file");
	assert_int_equal(symbols_module(s, &(struct file_identity){ .device = 1, .inode = 1 },
					"/lib/x (deleted)", false, &m),
			 0);
	expect_why(s, m, "deleted");
	assert_string_equal(m->unreadable, "deleted");
	assert_int_equal(symbols_module(s, &(struct file_identity){ 0 }, "[anon]", true, &m), 0);
	expect_why(s, m, "anonymous");
	symbols_free(s);
}

static void test_build_id(void **state)
{
	static const enum specimen which[] = { PIE, UUID };

	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		struct symbols *s = fresh(1 << 20), *other = fresh(1 << 20);
		struct module *file = module_of(other, paths[which[i]]), *m;
		uint8_t id[BUILD_ID_BYTES] = { 0 };
		struct symbol_name name;
		uint32_t size;
		uint64_t offset = offset_of(paths[which[i]], "main", &size);

		assert_int_equal(symbols_user(other, file, offset, false, &name), 0);
		memcpy(id, file->build_id, file->build_id_bytes);
		assert_int_equal(symbols_module_by_build_id(s, id, &m), 0);
		expect_why(s, m, "unknown_build_id");
		assert_null(m->resolved);
		file = module_of(s, paths[which[i]]);
		module_of(s, paths[STRIPPED]);
		assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
		assert_string_equal(name.fn, "main");
		assert_ptr_equal(m->resolved, file);
		assert_int_equal(m->build_id_bytes, file->build_id_bytes);
		symbols_free(s);
		symbols_free(other);
	}
}

/*
 * When the kernel has reported the build-id, that alone decides whether a file which was written
 * since is the one.
 */
static void test_rewritten_of_known_build(void **state)
{
	char path[] = "/tmp/symbols_test.XXXXXX";
	_cleanup_free_ char *first = NULL, *second = NULL;
	_cleanup_close_ int fd = mkstemp(path);
	struct symbols *s = fresh(1 << 20);
	size_t first_bytes, second_bytes;
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);
	uint8_t id[SYMBOLS_BUILD_ID_MAX];
	struct module *m;

	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &first, &first_bytes), 0);
	assert_int_equal(io_read_file(AT_FDCWD, paths[UUID], 1 << 20, &second, &second_bytes), 0);
	assert_int_equal(io_write_full(fd, second, second_bytes), 0);
	assert_int_equal(symbols_user(s, module_of(s, paths[PIE]), offset, false, &name), 0);
	assert_int_equal(symbols_build_id(s, module_of(s, paths[PIE]), id), BUILD_ID_BYTES);
	symbols_free(s);

	s = fresh(1 << 20);
	m = module_of(s, path);
	assert_true(symbols_learn_build_id(s, m, id));
	assert_int_equal(pwrite(fd, second, second_bytes, 0), second_bytes);
	expect_why(s, m, "other_file");
	m->loaded = false;
	assert_true(symbols_learn_build_id(s, m, id));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, first, first_bytes, 0), first_bytes);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "main");
	unlink(path);
	symbols_free(s);
}

/* The same inode with other contents is another file. */
static void test_rewritten(void **state)
{
	char path[] = "/tmp/symbols_test.XXXXXX";
	_cleanup_free_ char *first = NULL, *second = NULL;
	_cleanup_close_ int fd = mkstemp(path);
	struct symbols *s = fresh(1);
	size_t first_bytes, second_bytes;
	struct symbol_name name;
	struct module *m, *other;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);

	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &first, &first_bytes), 0);
	assert_int_equal(io_read_file(AT_FDCWD, paths[UUID], 1 << 20, &second, &second_bytes), 0);
	assert_int_equal(io_write_full(fd, first, first_bytes), 0);
	m = module_of(s, path);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	symbols_trim(s);
	other = module_of(s, paths[PIE]);
	assert_int_equal(symbols_user(s, other, offset, false, &name), 0);
	assert_int_equal(pwrite(fd, second, second_bytes, 0), second_bytes);
	symbols_trim(s);
	expect_why(s, m, "other_file");
	unlink(path);
	symbols_free(s);
}

/* More symbols than are read of one table. */
#define TOO_MANY ((uint64_t)ELF_SYMBOLS_MAX * ELF_SYMBOLS_PER_FUNCTION + 1)

/*
 * Moves the symbol table of a program to `offset`, with TOO_MANY entries, of which those behind its
 * own are none. Returns its own entries, which are to be written there.
 */
static Elf64_Shdr move_symbols(char *data, uint64_t offset)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)data;
	Elf64_Shdr *s = (Elf64_Shdr *)(void *)(data + header->e_shoff), before;

	while (s->sh_type != SHT_SYMTAB)
		s++;
	before = *s;
	s->sh_offset = offset;
	s->sh_size = TOO_MANY * sizeof(Elf64_Sym);
	return before;
}

/*
 * A program with gigabytes of debug information behind its code, and with more symbols than are
 * read: read files have their names, and those without have the reason.
 */
static void test_large(void **state)
{
	char path[] = "/tmp/symbols_test.XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	struct symbols *s = fresh(1 << 20);
	_cleanup_free_ char *data = NULL;
	const off_t far = (off_t)4 << 30;
	struct symbol_name name;
	struct module *m;
	Elf64_Shdr own;
	uint32_t size;
	size_t bytes;

	assert_true(fd >= 0);
	assert_int_equal(io_read_file(AT_FDCWD, paths[PIE], 1 << 20, &data, &bytes), 0);
	own = move_symbols(data, (uint64_t)far);
	assert_int_equal(io_write_full(fd, data, bytes), 0);
	assert_int_equal(pwrite(fd, data + own.sh_offset, own.sh_size, far), own.sh_size);
	assert_int_equal(ftruncate(fd, (off_t)5 << 30), 0);
	m = module_of(s, path);
	assert_int_equal(symbols_user(s, m, offset_of(paths[PIE], "main", &size), false, &name), 0);
	assert_string_equal(name.fn, "main");
	expect_why(s, m, "too_large");
	assert_non_null(strstr(reason_help("too_large"), "trocar symbolize"));
	symbols_free(s);
	unlink(path);
}

static void test_cache(void **state)
{
	struct symbols *s = fresh(1);
	struct module *a = module_of(s, paths[PIE]), *b = module_of(s, paths[UUID]);
	struct symbols_stats stats;
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);

	assert_int_equal(symbols_user(s, a, offset, false, &name), 0);
	expect_why(s, b, "cache_full");
	assert_string_equal(name.fn, "main");
	symbols_trim(s);
	symbols_stats(s, &stats);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(stats.symbols, 0);
	assert_int_equal(symbols_user(s, b, offset_of(paths[UUID], "main", &size), false, &name),
			 0);
	assert_null(a->symbols);
	symbols_free(s);
}

static void test_least_recently_used_goes(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *a = module_of(s, paths[PIE]), *b;
	struct symbols_stats one, stats;
	struct symbol_name name;

	symbols_user(s, a, 64, false, &name);
	symbols_stats(s, &one);
	symbols_free(s);
	s = fresh(one.bytes + 1);
	a = module_of(s, paths[PIE]);
	b = module_of(s, paths[UUID]);
	symbols_user(s, a, 64, false, &name);
	symbols_user(s, b, 64, false, &name);
	symbols_user(s, a, 64, false, &name);
	assert_non_null(a->symbols);
	assert_non_null(b->symbols);
	symbols_trim(s);
	assert_non_null(a->symbols);
	assert_null(b->symbols);
	symbols_stats(s, &stats);
	assert_int_equal(stats.bytes, one.bytes);
	symbols_free(s);
}

static void test_vdso(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct symbol_name name;
	struct module *m;
	bool found = false;

	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	assert_int_equal(symbols_module(s, &(struct file_identity){ 0 }, "[vdso]", false, &m), 0);
	for (uint64_t offset = 0; offset < 16384; offset += 16)
		if (symbols_user(s, m, offset, false, &name) == 0)
			found = found || strstr(name.fn, "gettime");
	assert_true(found);
	symbols_free(s);
}

static void test_kernel(void **state)
{
	char path[] = "/tmp/symbols_test.XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	struct symbols_stats stats;
	struct symbol_name name;
	const char *module;
	struct symbols *s;

	records_file_ksym(f, 0xffffffff81000000ULL, "do_idle", "");
	records_file_ksym(f, 0xffffffffc0000000ULL, "ext4_write", "ext4");
	fclose(f);
	assert_int_equal(symbols_new(1 << 20, path, &s), 0);
	assert_int_equal(symbols_kernel(s, 0xffffffff81000010ULL, &name, &module), 0);
	assert_string_equal(name.fn, "do_idle");
	assert_int_equal(name.offset_in_fn, 0x10);
	assert_string_equal(module, "");
	assert_int_equal(symbols_kernel(s, 0xffffffffc0000010ULL, &name, &module), 0);
	assert_string_equal(module, "ext4");
	assert_int_equal(symbols_kernel(s, 0x10, &name, &module), -ENOENT);
	assert_string_equal(name.reason, "no_symbol");
	assert_string_equal(module, "");
	unlink(path);
	symbols_trim(s);
	assert_int_equal(symbols_kernel(s, 0xffffffff81000010ULL, &name, &module), 0);
	symbols_trim_kernel(s);
	symbols_stats(s, &stats);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(symbols_kernel(s, 0xffffffff81000010ULL, &name, &module), -ENOENT);
	assert_string_equal(name.reason, "no_ksyms");
	symbols_free(s);
	s = fresh(1);
	assert_int_equal(symbols_kernel(s, 0xffffffff81000010ULL, &name, &module), -ENOENT);
	assert_string_equal(name.reason, "no_ksyms");
	symbols_free(s);
}

static void write_ksyms(const char *path, unsigned int count)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	for (unsigned int i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "function_%u", i);
		records_file_ksym(f, 0xffffffffc0000000ULL + i * 0x10000ULL, name, "ext4");
	}
	fclose(f);
}

/* A function of a module that came since ksyms was read is found, but ksyms is not read for every
 * stranger. */
static void test_kernel_grows(void **state)
{
	char path[] = "/tmp/symbols_test.XXXXXX";
	struct timespec soon = { .tv_sec = 2, .tv_nsec = 100000000 };
	struct symbol_name name, held;
	const char *module;
	struct symbols *s;

	close(mkstemp(path));
	write_ksyms(path, 1);
	assert_int_equal(symbols_new(1 << 20, path, &s), 0);
	assert_int_equal(symbols_kernel(s, 0xffffffffc0000010ULL, &held, &module), 0);
	write_ksyms(path, 2);
	assert_int_equal(symbols_kernel(s, 0xffffffffc0010010ULL, &name, &module), -ENOENT);
	nanosleep(&soon, NULL);
	assert_int_equal(symbols_kernel(s, 0xffffffffc0010010ULL, &name, &module), 0);
	assert_string_equal(name.fn, "function_1");
	assert_string_equal(module, "ext4");
	assert_string_equal(held.fn, "function_0");
	symbols_free(s);
	unlink(path);
}

UNIT_TESTS(symbols)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_readable),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_rewritten_of_known_build),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_least_recently_used_goes),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_kernel_grows),
	};

	int r;

	if (argc != 1 + SPECIMENS) {
		fprintf(stderr, "usage: %s SPECIMEN...\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < SPECIMENS; i++)
		paths[i] = realpath(argv[1 + i], NULL);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < SPECIMENS; i++)
		free(paths[i]);
	return r;
}
