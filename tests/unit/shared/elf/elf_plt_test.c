/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "tests/unit/shared/elf/elf_testing.h"

static void test_plt(void **state)
{
	static const char *const programs[] = { "plt_lazy", "plt_now", "plt_ibt" };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_symbols *s = elf_testing_read(programs[i]);
		ptrdiff_t printf_at = elf_testing_place_of(s, "printf@plt");
		uint64_t start;

		if (printf_at < 0 || elf_testing_place_of(s, "specimen_resolved@plt") < 0)
			print_error("%s: a stub without its name\n", programs[i]);
		assert_true(printf_at >= 0);
		assert_true(elf_testing_place_of(s, "specimen_resolved@plt") >= 0);
		assert_string_equal(elf_symbols_find(s, s->names.keys[printf_at] + 5, &start),
				    "printf@plt");
		assert_int_equal(s->names.sizes[printf_at], 16);
		elf_testing_has_all(s, programs[i]);
		elf_symbols_free(s);
	}
}

/*
 * A static program calls its IFUNCs through stubs. They are not _init, which lies before them and
 * has no size, whether they have names or not.
 */
static void test_static(void **state)
{
	struct elf_image image = elf_testing_open(elf_testing_folder, "plt_static");
	struct elf_symbols *s = elf_testing_read("plt_static");
	const Elf64_Shdr *plt;
	struct elf_reader e;
	size_t stubs = 0;
	uint64_t start;

	assert_int_equal(elf_reader_open(&image, &e), 0);
	assert_int_equal(elf_reader_sections(&e), 0);
	assert_int_equal(elf_reader_find(&e, ".plt", &plt), 0);
	for (uint64_t at = 0; at < plt->sh_size; at += 16) {
		const char *name = elf_symbols_find(s, plt->sh_offset + at, &start);

		if (name && !strstr(name, "@plt"))
			fail_msg("a stub is called %s", name);
		stubs += name != NULL;
	}
	assert_true(stubs > 1);
	assert_true(elf_testing_place_of(s, "specimen_resolved@plt") >= 0);
	assert_true(elf_testing_place_of(s, "_init") >= 0);
	elf_reader_done(&e);
	elf_symbols_free(s);
	close(image.fd);
}

UNIT_TESTS(elf_plt)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_static),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
