/* SPDX-License-Identifier: BSD-2-Clause */
/* symbols_debug_test.c: a debug file that is installed while the agent runs. */
#include "tests/unit/runner/unit.h"

#include <errno.h>

#include "shared/elf/reason.h"
#include "shared/tools/io.h"
#include "tests/unit/consumer/symbols/specimen_testing.h"
#include "tests/unit/shared/elf/elf_testing.h"

static char folder[] = "/tmp/trocar-debug-XXXXXX", program[PATH_MAX], debug[PATH_MAX];

static void read_specimen(const char *name, char **ret_data, size_t *ret_bytes)
{
	char path[PATH_MAX];

	assert_true(snprintf(path, sizeof(path), "%s/%s", elf_testing_folder, name) < PATH_MAX);
	assert_int_equal(io_read_file(AT_FDCWD, path, 1 << 20, ret_data, ret_bytes), 0);
}

static void write_file(const char *path, const char *data, size_t bytes)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(io_write_full(fd, data, bytes), 0);
}

/* Installs the debug file that the specimen's link names. */
static void install(void)
{
	_cleanup_free_ char *data = NULL;
	size_t bytes;

	read_specimen("split.debug", &data, &bytes);
	write_file(debug, data, bytes);
}

/* Writes the stripped program; with `bare` it has neither dynamic symbols nor stubs. */
static struct module *start(struct symbols *s, bool bare)
{
	_cleanup_free_ char *data = NULL;
	Elf64_Ehdr header;
	size_t bytes;

	unlink(debug);
	read_specimen("split", &data, &bytes);
	memcpy(&header, data, sizeof(header));
	for (size_t i = 0; bare && i < header.e_shnum; i++) {
		char *at = data + header.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr section;

		memcpy(&section, at, sizeof(section));
		if (section.sh_type == SHT_DYNSYM || section.sh_type == SHT_RELA)
			section.sh_type = SHT_PROGBITS;
		memcpy(at, &section, sizeof(section));
	}
	write_file(program, data, bytes);
	return module_of(s, program);
}

static uint64_t offset_in_whole(const char *function)
{
	struct elf_symbols *whole = elf_testing_read("split.whole");
	ptrdiff_t at = elf_testing_place_of(whole, function);
	uint64_t offset;

	assert_true(at >= 0);
	offset = whole->names.keys[at];
	elf_symbols_free(whole);
	return offset;
}

static void expect(struct symbols *s, struct module *m, const char *fn, const char *why)
{
	struct symbol_name name;

	symbols_user(s, m, offset_in_whole("specimen_local"), false, &name);
	assert_string_equal(name.fn ? name.fn : name.reason, fn ? fn : why);
}

/* Installed between two sessions, it counts from the next one on: names in use stay. */
static void test_installed(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *m = start(s, false);
	struct symbol_name held;

	assert_int_equal(symbols_user(s, m, offset_in_whole("printf@plt"), false, &held), 0);
	expect(s, m, NULL, "no_symbol");
	install();
	expect(s, m, NULL, "no_symbol");
	assert_string_equal(held.fn, "printf@plt");
	symbols_trim(s);
	expect(s, m, "specimen_local", NULL);
	symbols_free(s);
}

static void test_installed_for_stripped(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *m = start(s, true);

	expect(s, m, NULL, "stripped");
	symbols_trim(s);
	expect(s, m, NULL, "stripped");
	install();
	expect(s, m, NULL, "stripped");
	symbols_trim(s);
	expect(s, m, "specimen_local", NULL);
	symbols_free(s);
}

/* A module with names for all frames is not looked at again. */
static void test_not_needed(void **state)
{
	struct symbols *s = fresh(1 << 20);
	struct module *m = start(s, false);
	struct symbols_stats stats;
	struct symbol_name name;

	assert_int_equal(symbols_user(s, m, offset_in_whole("printf@plt"), false, &name), 0);
	install();
	symbols_trim(s);
	assert_int_equal(symbols_user(s, m, offset_in_whole("printf@plt"), false, &name), 0);
	symbols_stats(s, &stats);
	assert_int_equal(stats.files_read, 1);
	symbols_free(s);
}

UNIT_TESTS(symbols_debug)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_installed),
		cmocka_unit_test(test_installed_for_stripped),
		cmocka_unit_test(test_not_needed),
	};
	int r;

	if (!elf_testing_start(argc, argv) || !mkdtemp(folder))
		return 2;
	snprintf(program, sizeof(program), "%s/app", folder);
	snprintf(debug, sizeof(debug), "%s/split.debug", folder);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(program);
	unlink(debug);
	rmdir(folder);
	return r;
}
