/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_extents_test.c: a symbol without a size has no code but its own. */
#include "tests/unit/runner/unit.h"

#include "shared/elf/elf_extents.h"
#include "shared/elf/x86_flow.h"
#include "tests/unit/shared/elf/elf_testing.h"

#if defined(__x86_64__)
#define HAS_CODE true
#else
#define HAS_CODE false /* specimen_open.c has no assembly there */
#endif

/* Every byte that `name` names is in the function of that name in the whole file. */
static void agrees(const char *name, const char *whole)
{
	struct elf_symbols *s = elf_testing_read(name), *w = elf_testing_read(whole);
	uint32_t last = w->names.keys[w->names.count - 1] + 64;

	assert_true(elf_testing_place_of(s, "specimen_run") >= 0);
	for (uint32_t at = w->names.keys[0]; at < last; at++) {
		uint64_t start, truth_start;
		const char *found = elf_symbols_find(s, at, &start),
			   *truth = elf_symbols_find(w, at, &truth_start);

		if (found && (!truth || start != truth_start))
			print_error("%s: %#x is in %s, not in %s\n", name, at,
				    truth ? truth : "none", found);
		assert_true(!found || (truth && start == truth_start));
	}
	elf_symbols_free(w);
	elf_symbols_free(s);
}

static void test_no_other_function(void **state)
{
	agrees("open_tables", "open_tables.whole");
	agrees("open_tables.global", "open_tables.whole");
	agrees("open_no-tables", "open_no-tables.whole");
}

/* The loop is named up to its return, in all files; what is behind it has no name. */
static void test_own_code(void **state)
{
	static const char *const files[] = { "open_tables", "open_no-tables" };

	for (size_t i = 0; HAS_CODE && i < ARRAY_SIZE(files); i++) {
		struct elf_symbols *s = elf_testing_read(files[i]);
		ptrdiff_t at = elf_testing_place_of(s, "open_loop");
		uint64_t start;

		assert_true(at >= 0);
		assert_int_equal(s->names.sizes[at], 16 + 2 + 2 + 2 + 1);
		assert_null(elf_symbols_find(s, s->names.keys[at] + s->names.sizes[at], &start));
		assert_string_equal(elf_symbols_after(s, s->names.keys[at] + s->names.sizes[at]),
				    "open_tail");
		elf_symbols_free(s);
	}
}

/* A library with assembly without sizes, as installed; what it has of its own has its name. */
static void test_musl(void **state)
{
	static const char *const names[] = { "memset", "memcpy", "memmove", "setjmp" };
	_cleanup_close_ int fd = -1;
	struct elf_image image;
	struct elf_symbols *s;
	struct stat st;

	fd = open("/lib/ld-musl-x86_64.so.1", O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		print_message("no musl here\n");
		return;
	}
	assert_int_equal(fstat(fd, &st), 0);
	image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
	assert_int_equal(elf_symbols_read(&image, NULL, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ptrdiff_t at = elf_testing_place_of(s, names[i]);

		assert_true(at >= 0);
		print_message("%s: %u bytes\n", names[i], s->names.sizes[at]);
		assert_in_range(s->names.sizes[at], 16, 1024);
	}
	elf_symbols_free(s);
}

/* Reads of code have a limit for a file; the rest is left out, and that is reported. */
static void test_limit(void **state)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "open_no-tables");
	struct elf_gather g = { .limits = { ELF_STRINGS_MAX, ELF_SYMBOLS_MAX } };
	size_t count = ELF_EXTENTS_CODE_MAX / 1024 + 1, unknown = 0;
	ptrdiff_t at;
	struct elf_symbols *s = elf_testing_read("open_no-tables");

	at = elf_testing_place_of(s, "specimen_run");
	assert_true(at >= 0);
	assert_int_equal(elf_reader_open(&image, &g.file), 0);
	g.entries = calloc(count, sizeof(*g.entries));
	assert_non_null(g.entries);
	g.entry_count = count;
	for (size_t i = 0; i < count; i++)
		g.entries[i] = (struct name_table_entry){ .key = s->names.keys[at],
							  .size = s->names.sizes[at],
							  .open = 1 };
	assert_int_equal(elf_extents_bound(&g), 0);
	for (size_t i = 0; i < count; i++)
		unknown += g.entries[i].size == 0;
	assert_in_range(unknown, 1, HAS_CODE ? count - 1 : count);
	assert_true(g.cut == HAS_CODE);
	elf_gather_done(&g);
	elf_symbols_free(s);
	close(image.fd);
}

UNIT_TESTS(elf_extents)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_other_function),
		cmocka_unit_test(test_own_code),
		cmocka_unit_test(test_musl),
		cmocka_unit_test(test_limit),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
