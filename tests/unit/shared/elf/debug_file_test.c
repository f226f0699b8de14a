/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "shared/elf/debug_file.h"
#include "tests/unit/shared/elf/elf_testing.h"

/* With debug files below `root`, of the program at `path` on the host. */
static struct elf_symbols *read_split(const char *name, const char *root, const char *path)
{
	struct debug_file f = { .root = root, .path = path };
	const struct elf_finder finder = { .open = debug_file_open, .context = &f };

	return elf_testing_read_in(elf_testing_folder, name, &finder);
}

/* A root of debug files made for one test. */
struct root {
	char path[64];
};

static void make_root(struct root *r)
{
	strcpy(r->path, "/tmp/debug_file_test.XXXXXX");
	assert_non_null(mkdtemp(r->path));
}

static void run_command(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run_command(const char *format, ...)
{
	char command[3 * PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own words */
}

static void remove_root(const struct root *r)
{
	run_command("rm -r '%s'", r->path);
}

/* Puts `debug` at the place of the build-id of `name`. */
static void put_by_build_id(const struct root *root, const char *name, const char *debug)
{
	struct elf_symbols *s = elf_testing_read(name);
	char hex[2 * BUILD_ID_BYTES_MAX + 1] = "";

	assert_true(s->id.n > 2);
	for (size_t i = 0; i < s->id.n; i++)
		snprintf(hex + 2 * i, 3, "%02x", s->id.bytes[i]);
	elf_symbols_free(s);
	run_command("mkdir -p '%s/.build-id/%.2s' && cp '%s/%s' '%s/.build-id/%.2s/%s.debug'",
		    root->path, hex, elf_testing_folder, debug, root->path, hex, hex + 2);
}

static void test_debug_file_by_build_id(void **state)
{
	struct elf_symbols *s;
	struct root root;

	make_root(&root);
	elf_testing_lacks(read_split("split", root.path, "/none/split"), "specimen_local");
	put_by_build_id(&root, "split", "split.debug");
	s = read_split("split", root.path, "/none/split");
	elf_testing_has_all(s, "split.whole");
	elf_symbols_free(s);
	/* One that lies there by that name but is of another build is not used. */
	put_by_build_id(&root, "split", "other.debug");
	elf_testing_lacks(read_split("split", root.path, "/none/split"), "specimen_local");
	remove_root(&root);
}

/* By the link, in the three places where debuggers look. */
static void test_debug_file_by_link(void **state)
{
	static const char *const programs[] = { "split", "split_crc" };
	static const char *const places[] = { "bin", "bin/.debug", "debug%s/bin" };
	struct elf_symbols *s;

	for (size_t p = 0; p < ARRAY_SIZE(programs); p++) {
		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			char place[PATH_MAX], path[PATH_MAX], whole[64], debug[80];
			struct root root;

			make_root(&root);
			snprintf(path, sizeof(path), "%s/bin/%s", root.path, programs[p]);
			snprintf(debug, sizeof(debug), "%s/debug", root.path);
			if (i < 2)
				snprintf(place, sizeof(place), "%s/%s", root.path, places[i]);
			else
				snprintf(place, sizeof(place), "%s%s/bin", debug, root.path);
			elf_testing_lacks(read_split(programs[p], debug, path), "specimen_local");
			run_command("mkdir -p '%s' && cp '%s/%s.debug' '%s'", place,
				    elf_testing_folder, programs[p], place);
			s = read_split(programs[p], debug, path);
			snprintf(whole, sizeof(whole), "%s.whole", programs[p]);
			elf_testing_has_all(s, whole);
			elf_symbols_free(s);
			/* One byte changed: for a file without build-id only the CRC decides. */
			run_command("printf x >>'%s/%s.debug'", place, programs[p]);
			s = read_split(programs[p], debug, path);
			assert_int_equal(elf_testing_place_of(s, "specimen_local") >= 0,
					 strcmp(programs[p], "split") == 0);
			elf_symbols_free(s);
			/* A FIFO there must not hold us. */
			run_command("rm '%s/%s.debug' && mkfifo '%s/%s.debug'", place, programs[p],
				    place, programs[p]);
			elf_testing_lacks(read_split(programs[p], debug, path), "specimen_local");
			remove_root(&root);
		}
	}
}

/* A program that was moved has another build-id than its debug file here. */
static void test_moved(void **state)
{
	elf_testing_lacks(read_split("moved", elf_testing_folder, "/none"), "specimen_local");
}

UNIT_TESTS(debug_file)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_file_by_build_id),
		cmocka_unit_test(test_debug_file_by_link),
		cmocka_unit_test(test_moved),
	};

	return elf_testing_start(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
