/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "consumer/symbols/elf_symbols.h"
#include "consumer/symbols/symbols.h"
#include "shared/cleanup.h"
#include "shared/io.h"
#include "tests/unit/symbols/records_file.h"

enum specimen { PIE, STRIPPED, UUID, SPECIMENS };

static char *paths[SPECIMENS];

static struct symbols *fresh(size_t max_bytes)
{
	struct symbols *s;

	assert_int_equal(symbols_new(max_bytes, NULL, &s), 0);
	return s;
}

static struct module *module_of(struct symbols *s, const char *path)
{
	struct module *m;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(symbols_module(s, (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev),
					st.st_ino, path, false, &m),
			 0);
	return m;
}

/* File offset and size of a function of the specimen, by the table that elf_symbols_test holds
 * against libelf. */
static uint64_t offset_of(const char *path, const char *name, uint32_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	struct elf_image image = { .fd = -1 };
	struct elf_symbols *table;
	uint64_t offset = 0;
	size_t bytes;

	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 20, &data, &bytes), 0);
	image.memory = (const uint8_t *)data;
	image.bytes = bytes;
	assert_int_equal(elf_symbols_read(&image, NULL, &table), 0);
	for (size_t i = 0; i < table->names.count; i++) {
		if (strcmp(names_text(&table->names, i), name) == 0) {
			offset = table->names.keys[i];
			*ret_size = table->names.sizes[i];
		}
	}
	elf_symbols_free(table);
	assert_true(offset > 0);
	return offset;
}

static void expect_why(struct symbols *s, struct module *m, const char *why)
{
	struct symbol_name name;

	assert_int_equal(symbols_user(s, m, 64, false, &name), -ENOENT);
	assert_null(name.fn);
	assert_string_equal(name.why, why);
}

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
	assert_null(name.why);
	assert_int_equal(name.offset_in_fn, 0);
	assert_int_equal(symbols_user(s, m, offset + size, true, &name), 0);
	assert_string_equal(name.fn, "specimen_local");
	assert_int_equal(name.offset_in_fn, size);
	assert_true(symbols_user(s, m, offset, true, &name) < 0 ||
		    strcmp(name.fn, "specimen_local") != 0);
	expect_why(s, m, "no_symbol");
	assert_int_equal(m->build_id_bytes, 20);
	symbols_stats(s, &stats);
	assert_int_equal(stats.files_read, 1);
	assert_int_equal(stats.lookups, 4);
	assert_true(stats.unnamed >= 1 && stats.unnamed <= 2);
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
	assert_int_equal(symbols_module(s, 1, 1, "/nonexistent", false, &m), 0);
	expect_why(s, m, "no_file");
	assert_int_equal(symbols_module(s, 1, 1, paths[PIE], false, &m), 0);
	expect_why(s, m, "other_file");
	assert_int_equal(symbols_module(s, 1, 1, "/lib/x (deleted)", false, &m), 0);
	expect_why(s, m, "deleted");
	assert_string_equal(m->unreadable, "deleted");
	assert_int_equal(symbols_module(s, 0, 0, "[anon]", true, &m), 0);
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
	assert_int_equal(symbols_module(s, 0, 0, "[vdso]", false, &m), 0);
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
	assert_string_equal(name.why, "no_symbol");
	assert_string_equal(module, "");
	unlink(path);
	symbols_trim(s);
	assert_int_equal(symbols_kernel(s, 0xffffffff81000010ULL, &name, &module), 0);
	symbols_trim_kernel(s);
	symbols_stats(s, &stats);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(symbols_kernel(s, 0xffffffff81000010ULL, &name, &module), -ENOENT);
	assert_string_equal(name.why, "no_ksyms");
	symbols_free(s);
	s = fresh(1);
	assert_int_equal(symbols_kernel(s, 0xffffffff81000010ULL, &name, &module), -ENOENT);
	assert_string_equal(name.why, "no_ksyms");
	symbols_free(s);
}

/* A broker in this process: what it would open, and how often it was asked. */
struct lender {
	const char *path;
	unsigned int asked, from_start; /* of them: for the place that starts at 0x1000 */
};

static int lend(void *context, const struct process_key *process, uint64_t start, uint64_t end,
		int *ret_fd)
{
	struct lender *l = context;
	int fd;

	l->asked++;
	l->from_start += start == 0x1000 && end == 0x2000 && process->tgid == 7;
	if (!l->path || start != 0x1000)
		return -EACCES;
	fd = open(l->path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	*ret_fd = fd;
	return 0;
}

/* A module with the specimen's numbers, at a path that leads nowhere on the host. */
static struct module *unreachable(struct symbols *s, const char *path, const char *as)
{
	struct module *m;
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(symbols_module(s, (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev),
					st.st_ino, as, false, &m),
			 0);
	return m;
}

static void place(struct symbols *s, struct module *m, uint64_t start)
{
	symbols_place(s, m, &(struct process_key){ .tgid = 7, .start_ns = 9 }, start,
		      start + 0x1000);
}

static void test_borrowed(void **state)
{
	static const char *const paths_inside[] = { "/in/the/container", "/gone (deleted)",
						    "/dev/null" };
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);

	for (size_t i = 0; i < ARRAY_SIZE(paths_inside); i++) {
		struct lender lender = { .path = paths[PIE] };
		struct symbols *s = fresh(1 << 20);
		struct module *m = unreachable(s, paths[PIE], paths_inside[i]);
		struct symbols_stats stats;
		struct symbol_name name;

		symbols_set_borrow(s, lend, &lender);
		place(s, m, 0x1000);
		place(s, m, 0x5000); /* asked first: seen last */
		assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
		assert_string_equal(name.fn, "main");
		assert_int_equal(m->build_id_bytes, 20);
		assert_int_equal(lender.asked, 2);
		assert_int_equal(lender.from_start, 1);
		symbols_stats(s, &stats);
		assert_int_equal(stats.files_borrowed, 1);
		symbols_free(s);
	}
}

/* Refused, or another file by now: the reason of the host stays, and it is not asked every time. */
static void test_not_borrowed(void **state)
{
	struct lender lender = { .path = NULL };
	struct symbols *s = fresh(1 << 20);
	struct module *m = unreachable(s, paths[PIE], "/in/the/container");

	symbols_set_borrow(s, lend, &lender);
	expect_why(s, m, "no_file");
	assert_int_equal(lender.asked, 0); /* it is mapped nowhere */
	symbols_free(s);
	s = fresh(1 << 20);
	symbols_set_borrow(s, lend, &lender);
	m = unreachable(s, paths[PIE], "/gone (deleted)");
	place(s, m, 0x1000);
	expect_why(s, m, "deleted");
	expect_why(s, m, "deleted");
	assert_int_equal(lender.asked, 1);
	lender.path = paths[UUID];
	m = unreachable(s, paths[PIE], "/in/the/container");
	place(s, m, 0x1000);
	expect_why(s, m, "no_file");
	assert_int_equal(lender.asked, 2);
	symbols_free(s);
}

/* The kernel's word on the build-id decides, on the host's file and on the broker's. */
static void test_told(void **state)
{
	static const uint8_t other[BUILD_ID_BYTES] = { 1, 2, 3 };
	struct lender lender = { .path = paths[UUID] };
	struct symbols *s = fresh(1 << 20);
	struct module *m = module_of(s, paths[UUID]);
	uint8_t id[BUILD_ID_BYTES] = { 0 };
	struct symbol_name name;
	uint32_t size;

	symbols_set_borrow(s, lend, &lender);
	place(s, m, 0x1000);
	symbols_told(s, m, other);
	expect_why(s, m, "other_file");
	assert_int_equal(lender.asked, 1);
	assert_memory_equal(m->build_id, other, BUILD_ID_BYTES);
	symbols_free(s);
	s = fresh(1 << 20);
	m = module_of(s, paths[UUID]);
	symbols_user(s, m, 64, false, &name);
	memcpy(id, m->build_id, m->build_id_bytes);
	symbols_free(s);
	s = fresh(1 << 20);
	m = module_of(s, paths[UUID]);
	symbols_told(s, m, id);
	symbols_told(s, m, other);
	assert_int_equal(m->build_id_bytes, 16);
	assert_int_equal(symbols_user(s, m, offset_of(paths[UUID], "main", &size), false, &name),
			 0);
	symbols_free(s);
}

/* A frame of which only the build-id is known, of a file in a container. */
static void test_build_id_borrowed(void **state)
{
	struct lender lender = { .path = paths[PIE] };
	struct symbols *s = fresh(1 << 20);
	struct module *file = module_of(s, paths[PIE]), *m;
	uint8_t id[BUILD_ID_BYTES] = { 0 };
	struct symbol_name name;
	uint32_t size;
	uint64_t offset = offset_of(paths[PIE], "main", &size);

	assert_int_equal(symbols_user(s, file, offset, false, &name), 0);
	memcpy(id, file->build_id, file->build_id_bytes);
	symbols_free(s);
	s = fresh(1 << 20);
	symbols_set_borrow(s, lend, &lender);
	file = unreachable(s, paths[PIE], "/in/the/container");
	place(s, file, 0x1000);
	assert_int_equal(symbols_module_by_build_id(s, id, &m), 0);
	assert_int_equal(symbols_user(s, m, offset, false, &name), 0);
	assert_string_equal(name.fn, "main");
	assert_ptr_equal(m->resolved, file);
	id[0] ^= 1;
	assert_int_equal(symbols_module_by_build_id(s, id, &m), 0);
	lender.asked = 0;
	expect_why(s, m, "unknown_build_id");
	expect_why(s, m, "unknown_build_id");
	assert_int_equal(lender.asked, 0);
	symbols_free(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_readable),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_least_recently_used_goes),
		cmocka_unit_test(test_borrowed),
		cmocka_unit_test(test_not_borrowed),
		cmocka_unit_test(test_told),
		cmocka_unit_test(test_build_id_borrowed),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_kernel),
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
