/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry points: the name alone proves nothing, the file must be the runtime that has it. */
#include "consumer/naming/frame_entry.h"

#include "shared/tools/macro.h"
#include "tests/unit/consumer/naming/code_testing.h"

enum kind { LIBC, PROGRAM, STATIC, PLUGIN, GO, GCCGO, KINDS };

static const struct code_testing_file files[KINDS] = {
	[LIBC] = { .soname = "libc.so.6" },
	[PROGRAM] = { .needed = "libc.so.6", .interpreter = true },
	[STATIC] = { .code = "" },
	[PLUGIN] = { .soname = "libpthreads.so" },
	[GO] = { .section = ".gopclntab" },
	[GCCGO] = { .soname = "libgo.so.21" },
};

#define BIT(kind)  (1u << (kind))
#define EVERYWHERE (BIT(KINDS) - 1)

static const struct {
	const char *fn, *raw, *after;
	unsigned int in; /* the files in which it is an entry point */
	uint64_t start;
} rows[] = {
	{ "clone", NULL, NULL, BIT(LIBC) },
	{ "clone@@GLIBC_2.2.5", NULL, NULL, BIT(LIBC) },
	{ "clone3", NULL, NULL, BIT(LIBC) },
	{ "start_thread", NULL, NULL, BIT(LIBC) },
	{ "thread_start", NULL, NULL, BIT(LIBC) },
	{ "__clone", NULL, NULL, BIT(LIBC) | BIT(STATIC) },
	{ "__clone3", NULL, NULL, BIT(LIBC) | BIT(STATIC) },
	{ "__libc_start_main@@GLIBC_2.34", NULL, NULL, BIT(LIBC) | BIT(STATIC) },
	{ "__libc_start_call_main", NULL, NULL, BIT(LIBC) | BIT(STATIC) },
	{ "_dl_start_user", NULL, NULL, BIT(LIBC) },
	/* Names that only begin so, and a function of a class that is called so. */
	{ "clone_tree", NULL, NULL, 0 },
	{ "clone:f", NULL, NULL, 0 },
	{ "clone::f(int)", "_ZN5clone1fEi", NULL, 0 },
	{ "clone", "_Z5clonev", NULL, 0 },
	{ "main", NULL, NULL, 0 },
	/* Where the file begins, and nowhere else. */
	{ "_start", NULL, NULL, EVERYWHERE, CODE_TESTING_CODE },
	{ "_start", NULL, NULL, 0, CODE_TESTING_CODE + 16 },
	/* The C library's start of a process and of a thread have no public names. */
	{ NULL, NULL, "__libc_start_main@@GLIBC_2.34", BIT(LIBC) },
	{ NULL, NULL, "pthread_create", BIT(LIBC) },
	{ NULL, NULL, "qsort_r", 0 },
	{ NULL, NULL, NULL, 0 },
	{ "_nl_find_locale", NULL, "__libc_start_main", 0 },
	{ "runtime.goexit.abi0", NULL, NULL, BIT(GO) },
	{ "runtime.mstart", NULL, NULL, BIT(GO) },
	{ "runtime.clone.abi0", NULL, NULL, BIT(GO) },
	{ "runtime.mcall", NULL, NULL, BIT(GO) },
	{ "runtime.systemstack.abi0", NULL, NULL, 0 },
	{ "runtime.goexited", NULL, NULL, 0 },
	{ "runtime.kickoff", NULL, NULL, BIT(GCCGO) },
	{ "*Fiber#run:Nil", NULL, NULL, EVERYWHERE },
	{ "*Fiber#running", NULL, NULL, 0 },
};

static void test_entries(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct code_files code;
	struct module *m;
	char path[64];

	code_files_init(&code, s);
	for (size_t k = 0; k < KINDS; k++) {
		code_testing_path(path, "entry");
		m = code_testing_module(s, path, &files[k]);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			struct named_frame f = { .fn = rows[i].fn,
						 .raw = rows[i].raw,
						 .after = rows[i].after,
						 .start = rows[i].start };

			if (frame_entry_is(&code, m, &f) != !!(rows[i].in & BIT(k)))
				fail_msg("row %zu in file %zu", i, k);
		}
		unlink(path);
		code_files_done(&code);
	}
	symbols_free(s);
}

/* A file that cannot be read proves nothing. */
static void test_unreadable(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct named_frame f = { .fn = "clone" };
	struct code_files code;
	struct module *m;

	code_files_init(&code, s);
	assert_int_equal(symbols_module(s, &(struct file_identity){ .device = 1, .inode = 1 },
					"/nonexistent/libc.so.6", false, &m),
			 0);
	assert_false(frame_entry_is(&code, m, &f));
	assert_false(frame_entry_is(&code, NULL, &f));
	code_files_done(&code);
	symbols_free(s);
}

UNIT_TESTS(frame_entry)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
