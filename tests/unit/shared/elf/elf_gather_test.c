/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_gather_test.c: addresses become file offsets, and what a broken source had is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* A debug file that is none leaves what the program itself has. */
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

/* Who has less room than the agent says so, and is told when it is too little. */
static void test_limits(void **state)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "plt_now");
	struct elf_limits limits = { .string_bytes = 1 << 20, .symbols = 3 };
	const struct elf_symbols_options options = { .limits = &limits };
	struct elf_symbols *s;

	assert_int_equal(elf_symbols_read(&image, &options, &s), -EFBIG);
	limits = (struct elf_limits){ .string_bytes = 30, .symbols = 1000 };
	assert_int_equal(elf_symbols_read(&image, &options, &s), -EFBIG);
	limits.string_bytes = 1 << 20;
	assert_int_equal(elf_symbols_read(&image, &options, &s), 0);
	elf_symbols_free(s);
	close(image.fd);
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

int main(int argc, char **argv)
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
