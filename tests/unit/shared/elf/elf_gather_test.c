/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * elf_gather_test.c: addresses become file offsets, and the symbols of a broken source are
 * forgotten.
 */
#include "tests/unit/runner/unit.h"

#include <errno.h>

#include "tests/unit/shared/elf/elf_testing.h"

/* As elf_finder.open; `context` is the name of a specimen. */
static int give_specimen(void *context, const struct elf_links *links, struct elf_image *ret_image)
{
	*ret_image = elf_testing_open(elf_testing_folder, context);
	return 0;
}

static struct elf_symbols *read_with(const char *name, char *debug)
{
	const struct elf_finder finder = { .open = give_specimen, .context = debug };

	return elf_testing_read_in(elf_testing_folder, name, &finder);
}

/* The program was moved after its symbols were split off: its addresses are others. */
static void test_bias(void **state)
{
	char debug[] = "moved.debug";
	struct elf_symbols *s = read_with("moved", debug);

	elf_testing_has_all(s, "moved.whole");
	elf_symbols_free(s);
}

/* A debug file that is none leaves the program's own symbols. */
static void test_broken_debug_file(void **state)
{
	char debug[] = "mini.cut.xz";
	struct elf_symbols *s = read_with("plt_now", debug);

	assert_true(elf_testing_place_of(s, "main") >= 0);
	elf_symbols_free(s);
	s = read_with("split", debug);
	assert_true(elf_testing_place_of(s, "printf@plt") >= 0);
	elf_testing_lacks(s, "specimen_local");
}

/* A debug file that the caller has open is taken, and stays open. */
static void test_open_debug_file(void **state)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "split");
	struct elf_image debug = elf_testing_open(elf_testing_folder, "split.debug");
	const struct elf_symbols_options options = { .debug = &debug };
	struct elf_symbols *s;

	assert_int_equal(elf_symbols_read(&image, &options, &s), 0);
	elf_testing_has_all(s, "split.whole");
	assert_true(elf_testing_place_of(s, "printf@plt") >= 0);
	elf_symbols_free(s);
	close(image.fd);
	assert_int_equal(close(debug.fd), 0);
}

/*
 * Reads the program with these limits. Every name that it has then must be one that it has without
 * limits, and reach no further. Returns how many it has, and whether it reports missing ones.
 */
static size_t read_within(const struct elf_symbols *whole, struct elf_limits limits, bool *ret_cut)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "plt_now");
	const struct elf_symbols_options options = { .limits = &limits };
	struct elf_symbols *s;
	size_t count;

	assert_int_equal(elf_symbols_read(&image, &options, &s), 0);
	for (size_t i = 0; i < s->names.count; i++) {
		const char *name = name_table_text(&s->names, i), *there;
		ptrdiff_t at = name_table_find(&whole->names, s->names.keys[i]);

		assert_true(at >= 0);
		there = name_table_text(&whole->names, (size_t)at);
		/* The better of two names of one function may be the one that did not fit. */
		if (strcmp(name, there) != 0 && strncmp(name, "specimen_", 9) != 0 &&
		    strncmp(name, "resolve", 7) != 0)
			fail_msg("%s is called %s", there, name);
		assert_int_equal(whole->names.keys[at], s->names.keys[i]);
		assert_true(s->names.sizes[i] <= whole->names.sizes[at]);
	}
	assert_true(s->names.count <= limits.symbols);
	count = s->names.count;
	*ret_cut = s->cut;
	elf_symbols_free(s);
	close(image.fd);
	return count;
}

/* What lies within the limits has its name. The rest is reported as without names. */
static void test_limits(void **state)
{
	struct elf_limits limits = { .string_bytes = 1 << 20, .symbols = 1000 };
	struct elf_symbols *whole = elf_testing_read("plt_now");
	size_t all, count, more = 0;
	bool cut;

	all = read_within(whole, limits, &cut);
	assert_false(cut);
	for (limits.symbols = 0; limits.symbols < all; limits.symbols++) {
		count = read_within(whole, limits, &cut);
		assert_true(cut);
		assert_true(count < all);
		more += count > 0;
	}
	assert_true(more > all / 2);
	limits.symbols = 1000;
	more = 0;
	for (limits.string_bytes = 2; limits.string_bytes < 512; limits.string_bytes += 7) {
		count = read_within(whole, limits, &cut);
		assert_true(cut);
		more += count > 0;
	}
	assert_true(more > 10);
	elf_symbols_free(whole);
}

/* Keys are offsets in the file, whatever the addresses are. */
static void test_apart(void **state)
{
	struct elf_symbols *s = elf_testing_read("apart");
	ptrdiff_t at = elf_testing_place_of(s, "main");
	struct elf_image image = elf_testing_open(elf_testing_folder, "apart");

	close(image.fd);
	assert_true(at >= 0);
	assert_true(s->names.keys[at] < image.bytes);
	assert_true(elf_testing_place_of(s, "printf@plt") >= 0);
	elf_symbols_free(s);
}

UNIT_TESTS(elf_gather)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bias),
		cmocka_unit_test(test_broken_debug_file),
		cmocka_unit_test(test_open_debug_file),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_apart),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
