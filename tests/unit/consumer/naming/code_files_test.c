/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts from files about their code: the runtime that they are, their entry point, their bytes. */
#include "consumer/naming/code_files.h"

#include "shared/tools/macro.h"
#include "tests/unit/consumer/naming/code_testing.h"

static const struct {
	struct code_testing_file file;
	enum code_runtime runtime;
} rows[] = {
	{ { .soname = "libc.so.6" }, CODE_C_LIBRARY },
	{ { .soname = "libc.so.6", .needed = "ld.so" }, CODE_C_LIBRARY },
	{ { .soname = "libpthread.so.0" }, CODE_C_LIBRARY },
	{ { .soname = "ld-linux-x86-64.so.2" }, CODE_C_LIBRARY },
	{ { .soname = "libc.musl-x86_64.so.1" }, CODE_C_LIBRARY },
	/* Names that only begin so. */
	{ { .soname = "libpthreadpool.so.0" }, CODE_OTHER },
	{ { .soname = "libc.so.60" }, CODE_OTHER },
	{ { .soname = "libc-2.so" }, CODE_OTHER },
	/* An executable, with and without libraries. */
	{ { .needed = "libc.so.6", .interpreter = true }, CODE_OTHER },
	{ { .needed = "libc.so.6" }, CODE_OTHER },
	{ { .interpreter = true }, CODE_OTHER },
	{ { .code = "" }, CODE_STATIC },
	{ { .section = ".gopclntab" }, CODE_GO },
	{ { .section = ".data.rel.ro.gopclntab", .needed = "x", .interpreter = true }, CODE_GO },
	{ { .section = ".gopclntabs", .interpreter = true }, CODE_OTHER },
	{ { .section = ".go_export", .interpreter = true }, CODE_GCCGO },
	{ { .soname = "libgo.so.21" }, CODE_GCCGO },
	{ { .soname = "libgood.so.21" }, CODE_OTHER },
};

static void test_runtimes(void **state)
{
	struct symbols *s = fresh(1 << 20);
	const struct code_file *f;
	struct code_files code;
	char path[64];

	code_files_init(&code, s);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		code_testing_path(path, "runtime");
		f = code_files_get(&code, code_testing_module(s, path, &rows[i].file));
		assert_non_null(f);
		if (f->runtime != rows[i].runtime)
			fail_msg("row %zu: %d", i, f->runtime);
		assert_int_equal(f->entry, CODE_TESTING_CODE);
		unlink(path);
		code_files_done(&code);
	}
	symbols_free(s);
}

/* More files than are open at once; each is found again with its own bytes. */
static void test_many(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *modules[2 * CODE_FILES_MAX];
	struct code_files code;
	char path[64], name[8];

	code_files_init(&code, s);
	for (int turn = 0; turn < 2; turn++)
		for (uint8_t i = 0; i < ARRAY_SIZE(modules); i++) {
			struct code_testing_file file = { .code = &i, .bytes = 1 };
			const struct code_file *f;
			uint8_t byte = 0xff;

			snprintf(name, sizeof(name), "%u", i);
			code_testing_path(path, name);
			if (turn == 0)
				modules[i] = code_testing_module(s, path, &file);
			f = code_files_get(&code, modules[i]);
			assert_non_null(f);
			assert_ptr_equal(f, code_files_get(&code, modules[i]));
			assert_true(code_files_read(f, CODE_TESTING_CODE, &byte, 1));
			assert_int_equal(byte, i);
			assert_false(code_files_read(f, CODE_TESTING_BYTES - 1, name, 2));
			if (turn == 1)
				unlink(path);
		}
	code_files_done(&code);
	symbols_free(s);
}

/* What cannot be opened, or is another file by now, has no facts. */
static void test_unknown(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct file_identity nowhere = { .device = 1, .inode = 1 };
	struct code_testing_file file = { .soname = "libc.so.6" };
	uint8_t id[BUILD_ID_BYTES] = { 1, 2, 3 };
	struct module *gone, *anonymous, *other;
	struct code_files code;
	char path[64];

	code_files_init(&code, s);
	assert_int_equal(symbols_module(s, &nowhere, "/nonexistent", false, &gone), 0);
	assert_int_equal(
		symbols_module(s, &(struct file_identity){ 0 }, "[anon]", true, &anonymous), 0);
	code_testing_path(path, "other");
	other = code_testing_module(s, path, &file);
	symbols_learn_build_id(s, other, id);
	assert_null(code_files_get(&code, gone));
	assert_null(code_files_get(&code, gone));
	assert_null(code_files_get(&code, anonymous));
	assert_null(code_files_get(&code, other));
	assert_null(code_files_get(&code, NULL));
	unlink(path);
	code_files_done(&code);
	symbols_free(s);
}

UNIT_TESTS(code_files)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtimes),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
