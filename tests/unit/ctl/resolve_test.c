/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "ctl/resolve.h"
#include "shared/cleanup.h"
#include "shared/io.h"
#include "shared/macro.h"
#include "tests/unit/ctl/specimens.h"

static const char *const layouts[] = { "pie", "fixed", "packed", "lld", "gold" };

/* Which files are there of a layout: the program and what was split off it. */
static const struct {
	const char *code, *debug;
} pairs[] = { { "full", NULL }, { "stripped", "debug" }, { NULL, "debug" }, { "full", "debug" } };

static int open_part(const char *layout, const char *part)
{
	char name[64];

	if (!part)
		return -1;
	snprintf(name, sizeof(name), "%s.%s", layout, part);
	return specimens_open(name);
}

static void check_places(const struct answer *a)
{
	assert_int_equal(a->unnamed, UNNAMED_NOT);
	assert_null(a->raw);
	assert_int_equal(a->n, 3);
	assert_string_equal(a->places[0].fn, "specimen_telling");
	assert_string_equal(a->places[1].fn, "specimen_inlined");
	assert_string_equal(a->places[2].fn, "specimen_between");
	assert_int_equal(a->places[0].line, specimens_line("/* line of the outer call */"));
	assert_int_equal(a->places[1].line, specimens_line("/* line of the instruction */"));
	assert_int_equal(a->places[2].line, specimens_line("/* line of the inner call */"));
	for (unsigned int i = 0; i < a->n; i++)
		assert_non_null(strstr(a->places[i].file, "specimen.c"));
}

/* Names and lines are the same from each pair of files, in each layout. */
static void test_layouts(void **state)
{
	struct specimens_facts facts = { 0 };
	struct answer answer;
	unsigned int seen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (!specimens_facts(layouts[i], &facts))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(pairs); j++) {
			_cleanup_close_ int code = open_part(layouts[i], pairs[j].code);
			_cleanup_close_ int debug = open_part(layouts[i], pairs[j].debug);
			struct resolve r;

			resolve_open(&r, code, debug, true);
			resolve_find(&r, facts.at, &answer);
			check_places(&answer);
			resolve_close(&r);
			seen++;
		}
	}
	assert_true(seen >= 3 * ARRAY_SIZE(pairs));
}

static void test_without_lines(void **state)
{
	_cleanup_close_ int code = specimens_open("pie.full");
	struct specimens_facts facts = { 0 };
	struct answer answer;
	struct resolve r;

	assert_true(specimens_facts("pie", &facts));
	resolve_open(&r, code, -1, false);
	resolve_find(&r, facts.at, &answer);
	assert_int_equal(answer.n, 1);
	assert_string_equal(answer.places[0].fn, "specimen_telling");
	assert_null(answer.places[0].file);
	resolve_find(&r, 0, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_NO_SYMBOL);
	resolve_find(&r, UINT64_MAX, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_NO_SYMBOL);
	resolve_close(&r);
}

static void test_no_sound_file(void **state)
{
	_cleanup_close_ int fd = memfd_create("no", MFD_CLOEXEC);
	struct answer answer;
	struct resolve r;

	assert_int_equal(io_write_full(fd, "\177ELF and no more", 16), 0);
	resolve_open(&r, fd, -1, true);
	resolve_find(&r, 0, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_BAD_FILE);
	resolve_close(&r);
	resolve_open(&r, -1, -1, true);
	resolve_find(&r, 0, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_BAD_FILE);
	resolve_close(&r);
}

/* A file cut anywhere gives an answer, and a sound one. */
static void test_cut_files(void **state)
{
	_cleanup_close_ int whole = specimens_open("pie.full");
	_cleanup_free_ char *data = NULL;
	struct specimens_facts facts = { 0 };
	size_t bytes;

	assert_true(specimens_facts("pie", &facts));
	assert_int_equal(io_read_fd(whole, 1 << 20, &data, &bytes), 0);
	for (size_t cut = 0; cut < bytes; cut += 97) {
		_cleanup_close_ int fd = memfd_create("cut", MFD_CLOEXEC);
		char message[ANSWER_BYTES];
		struct answer answer, back;
		struct resolve r;

		assert_int_equal(io_write_full(fd, data, cut), 0);
		resolve_open(&r, fd, -1, true);
		resolve_find(&r, facts.at, &answer);
		assert_int_equal(answer_read(message, answer_write(&answer, message), &back), 0);
		resolve_close(&r);
	}
}

/* A symbol table of half a gigabyte that costs nothing to make: a hole. */
static void test_huge_table(void **state)
{
	_cleanup_close_ int whole = specimens_open("pie.full"),
			    fd = memfd_create("huge", MFD_CLOEXEC);
	struct specimens_facts facts = { 0 };
	_cleanup_free_ char *data = NULL;
	struct answer answer;
	struct resolve r;
	Elf64_Ehdr header;
	size_t bytes;

	assert_true(specimens_facts("pie", &facts));
	assert_int_equal(io_read_fd(whole, 1 << 20, &data, &bytes), 0);
	memcpy(&header, data, sizeof(header));
	for (unsigned int i = 0; i < header.e_shnum; i++) {
		char *at = data + header.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr section;

		memcpy(&section, at, sizeof(section));
		if (section.sh_type == SHT_SYMTAB)
			section.sh_size = 480u << 20;
		memcpy(at, &section, sizeof(section));
	}
	assert_int_equal(io_write_full(fd, data, bytes), 0);
	assert_int_equal(ftruncate(fd, 512 << 20), 0);
	resolve_open(&r, fd, -1, false);
	resolve_find(&r, facts.at, &answer);
	assert_int_equal(answer.unnamed, UNNAMED_GAVE_UP);
	resolve_close(&r);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),	      cmocka_unit_test(test_without_lines),
		cmocka_unit_test(test_no_sound_file), cmocka_unit_test(test_cut_files),
		cmocka_unit_test(test_huge_table),
	};

	specimens_dir = argv[1];
	specimens_source = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
