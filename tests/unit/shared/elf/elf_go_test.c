/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "tests/unit/shared/elf/elf_testing.h"

/* A stripped Go program has every function that the whole one's .symtab has, at its place. */
static void test_go(void **state)
{
	static const char *const programs[] = { "go_exe", "go_pie" };

	if (!elf_testing_go_folder[0])
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_symbols *s =
			elf_testing_read_in(elf_testing_go_folder, programs[i], NULL);
		struct elf_symbols *w;
		char whole[64];
		size_t checked = 0;

		snprintf(whole, sizeof(whole), "%s.whole", programs[i]);
		w = elf_testing_read_in(elf_testing_go_folder, whole, NULL);
		assert_true(elf_testing_place_of(s, "main.specimenLocal") >= 0);
		assert_true(elf_testing_place_of(s, "main.(*counter).specimenMethod") >= 0);
		for (size_t j = 0; j < w->names.count; j++) {
			const char *name = name_table_text(&w->names, j), *found;
			uint64_t start;

			/* Hand-written assembly and generated code are called otherwise there. */
			if (strncmp(name, "main.", 5) != 0 && strncmp(name, "runtime.m", 9) != 0)
				continue;
			found = elf_symbols_find(s, w->names.keys[j], &start);
			if (strchr(name, ' ') || strstr(name, "abi0") || strstr(name, "..") ||
			    w->names.sizes[j] == 0)
				continue;
			assert_non_null(found);
			assert_int_equal(start, w->names.keys[j]);
			assert_string_equal(found, name);
			checked++;
		}
		if (checked < 50)
			print_error("%s: only %zu functions compared\n", programs[i], checked);
		assert_true(checked >= 50);
		elf_symbols_free(s);
		elf_symbols_free(w);
	}
}

/* The layouts of all Go versions, of which no compiler is at hand. */
static void test_go_layouts(void **state)
{
	static const char *const programs[] = { "go_2", "go_16", "go_18", "go_20" };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_symbols *s = elf_testing_read(programs[i]);
		uint64_t start;

		if (s->names.count != 2)
			print_error("%s: %zu names\n", programs[i], s->names.count);
		assert_int_equal(s->names.count, 2);
		assert_string_equal(name_table_text(&s->names, 0), "main.first");
		assert_string_equal(name_table_text(&s->names, 1), "main.(*T).second");
		assert_int_equal(s->names.keys[1] - s->names.keys[0], 16);
		assert_string_equal(elf_symbols_find(s, s->names.keys[1] + 31, &start),
				    "main.(*T).second");
		assert_null(elf_symbols_find(s, s->names.keys[1] + 32, &start));
		elf_symbols_free(s);
	}
}

/*
 * Since Go 1.26 the header of the table does not have the begin of the text. Where another linker
 * has put code before it, the section .text does not have it either.
 */
static void test_text_start(void **state)
{
	static const struct {
		const char *program, *second;
		uint64_t code; /* bytes in .text before Go's */
	} cases[] = {
		{ "go_26_module", "main.(*T).second", 48 },
		{ "go_26_pie", "main.(*T).second", 48 },
		{ "go_26_entry", "_rt0_amd64_linux", 0 },
		/* No source of it is true: no name. */
		{ "go_26_false", NULL, 0 },
		{ "go_26_crt", NULL, 0 },
		{ "go_26_bare", NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elf_image image = elf_testing_open(elf_testing_folder, cases[i].program);
		struct elf_symbols *s = elf_testing_read(cases[i].program);
		const Elf64_Shdr *text;
		struct elf_reader e;
		uint64_t start;

		if (s->names.count != (cases[i].second ? 2 : 0))
			print_error("%s: %zu names\n", cases[i].program, s->names.count);
		assert_int_equal(s->names.count, cases[i].second ? 2 : 0);
		assert_int_equal(elf_reader_open(&image, &e), 0);
		assert_int_equal(elf_reader_sections(&e), 0);
		assert_int_equal(elf_reader_find(&e, ".text", &text), 0);
		if (cases[i].second) {
			assert_int_equal(s->names.keys[0], text->sh_offset + cases[i].code);
			assert_string_equal(elf_symbols_find(s, s->names.keys[0], &start),
					    "main.first");
			assert_string_equal(elf_symbols_find(s, s->names.keys[1], &start),
					    cases[i].second);
		}
		elf_reader_done(&e);
		elf_symbols_free(s);
		close(image.fd);
	}
}

/* A real program of that kind: what has a name has the right one. */
static void test_text_start_of_program(void **state)
{
	struct elf_symbols *s, *whole;

	if (!elf_testing_go_folder[0])
		skip();
	s = elf_testing_read_in(elf_testing_go_folder, "go_external", NULL);
	whole = elf_testing_read_in(elf_testing_go_folder, "go_external.whole", NULL);
	for (size_t i = 0; i < whole->names.count; i++) {
		const char *name = name_table_text(&whole->names, i), *found;
		uint64_t start;

		/* Hand-written assembly and generated code are called otherwise there. */
		if ((strncmp(name, "main.", 5) != 0 && strncmp(name, "runtime.m", 9) != 0) ||
		    strchr(name, ' ') || strstr(name, "abi0") || strstr(name, "..") ||
		    whole->names.sizes[i] == 0)
			continue;
		found = elf_symbols_find(s, whole->names.keys[i], &start);
		if (found)
			assert_string_equal(found, name);
	}
	elf_symbols_free(s);
	elf_symbols_free(whole);
}

UNIT_TESTS(elf_go)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_go_layouts),
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_text_start),
		cmocka_unit_test(test_text_start_of_program),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
