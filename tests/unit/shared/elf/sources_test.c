/* SPDX-License-Identifier: BSD-2-Clause */
/* sources_test.c: names that stand elsewhere than in the file's own .symtab (make_specimens). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/cleanup.h"
#include "shared/elf/debug_file.h"
#include "shared/elf/elf_symbols.h"
#include "shared/macro.h"

static char specimens[PATH_MAX], go_specimens[PATH_MAX];
static const char *folder = specimens, *go_folder; /* the second NULL without a Go compiler */

static struct elf_symbols *read_with(const char *name, const struct elf_finder *finder)
{
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct elf_image image;
	struct elf_symbols *s;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
	assert_int_equal(elf_symbols_read(&image, finder, &s), 0);
	return s;
}

/* With debug files below `root`, of the program at `path` on the host. */
static struct elf_symbols *read_split(const char *name, const char *root, const char *path)
{
	struct debug_file f = { .root = root, .path = path };

	return read_with(name, &(struct elf_finder){ .open = debug_file_open, .context = &f });
}

static ptrdiff_t place_of(const struct elf_symbols *s, const char *name)
{
	for (size_t i = 0; i < s->names.count; i++)
		if (strcmp(name_table_text(&s->names, i), name) == 0)
			return (ptrdiff_t)i;
	return -1;
}

/* Every local function of the whole program is in `s`, at its place. */
static void has_all(const struct elf_symbols *s, const char *whole)
{
	struct elf_symbols *w = read_with(whole, NULL);
	static const char *const names[] = { "main", "specimen_local", "specimen_labelled" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ptrdiff_t here = place_of(s, names[i]), there = place_of(w, names[i]);
		uint64_t start;

		assert_true(there >= 0);
		assert_true(here >= 0);
		assert_int_equal(s->names.keys[here], w->names.keys[there]);
		assert_int_equal(s->names.sizes[here], w->names.sizes[there]);
		assert_string_equal(elf_symbols_find(s, w->names.keys[there], &start), names[i]);
	}
	elf_symbols_free(w);
}

static void lacks(struct elf_symbols *s, const char *name)
{
	assert_int_equal(place_of(s, name), -1);
	elf_symbols_free(s);
}

/* A root of debug files made for one test. */
struct root {
	char path[64];
};

static void root_make(struct root *r)
{
	strcpy(r->path, "/tmp/sources_test.XXXXXX");
	assert_non_null(mkdtemp(r->path));
}

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void run(const char *format, ...)
{
	char command[3 * PATH_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test's own words */
}

static void root_remove(const struct root *r)
{
	run("rm -r '%s'", r->path);
}

/* Puts `debug` where the build-id of `name` says. */
static void put_by_build_id(const struct root *root, const char *name, const char *debug)
{
	struct elf_symbols *s = read_with(name, NULL);
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";

	assert_true(s->build_id_bytes > 2);
	for (size_t i = 0; i < s->build_id_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", s->build_id[i]);
	elf_symbols_free(s);
	run("mkdir -p '%s/.build-id/%.2s' && cp '%s/%s' '%s/.build-id/%.2s/%s.debug'", root->path,
	    hex, folder, debug, root->path, hex, hex + 2);
}

static void test_debug_file_by_build_id(void **state)
{
	struct elf_symbols *s;
	struct root root;

	root_make(&root);
	lacks(read_split("split", root.path, "/none/split"), "specimen_local");
	put_by_build_id(&root, "split", "split.debug");
	s = read_split("split", root.path, "/none/split");
	has_all(s, "split.whole");
	elf_symbols_free(s);
	/* One that lies there by that name but is of another build is not used. */
	put_by_build_id(&root, "split", "other.debug");
	lacks(read_split("split", root.path, "/none/split"), "specimen_local");
	root_remove(&root);
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

			root_make(&root);
			snprintf(path, sizeof(path), "%s/bin/%s", root.path, programs[p]);
			snprintf(debug, sizeof(debug), "%s/debug", root.path);
			if (i < 2)
				snprintf(place, sizeof(place), "%s/%s", root.path, places[i]);
			else
				snprintf(place, sizeof(place), "%s%s/bin", debug, root.path);
			lacks(read_split(programs[p], debug, path), "specimen_local");
			run("mkdir -p '%s' && cp '%s/%s.debug' '%s'", place, folder, programs[p],
			    place);
			s = read_split(programs[p], debug, path);
			snprintf(whole, sizeof(whole), "%s.whole", programs[p]);
			has_all(s, whole);
			elf_symbols_free(s);
			/* One byte changed: of a file without build-id only the CRC tells. */
			run("printf x >>'%s/%s.debug'", place, programs[p]);
			s = read_split(programs[p], debug, path);
			assert_int_equal(place_of(s, "specimen_local") >= 0,
					 strcmp(programs[p], "split") == 0);
			elf_symbols_free(s);
			/* A FIFO there must not hold us. */
			run("rm '%s/%s.debug' && mkfifo '%s/%s.debug'", place, programs[p], place,
			    programs[p]);
			lacks(read_split(programs[p], debug, path), "specimen_local");
			root_remove(&root);
		}
	}
}

/* The program was moved after its symbols were split off: its addresses are others. */
static void test_moved(void **state)
{
	struct elf_symbols *s;
	char path[PATH_MAX];
	struct stat st;
	struct elf_image image = { .fd = -1 };

	snprintf(path, sizeof(path), "%s/moved.debug", folder);
	image.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(image.fd >= 0);
	assert_int_equal(fstat(image.fd, &st), 0);
	image.bytes = (uint64_t)st.st_size;
	s = read_split("moved", folder, "/none");
	assert_int_equal(place_of(s, "specimen_local"), -1); /* its build-id is another */
	elf_symbols_free(s);
	close(image.fd);
}

static int give(void *context, const struct elf_links *links, struct elf_image *ret_image)
{
	const char *path = context;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*ret_image = (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
	return 0;
}

static void test_bias(void **state)
{
	char path[PATH_MAX];
	struct elf_symbols *s;

	snprintf(path, sizeof(path), "%s/moved.debug", folder);
	s = read_with("moved", &(struct elf_finder){ .open = give, .context = path });
	has_all(s, "moved.whole");
	elf_symbols_free(s);
}

/* A debug file that is none leaves what the program itself has. */
static void test_broken_debug_file(void **state)
{
	char path[PATH_MAX];
	struct elf_symbols *s;

	snprintf(path, sizeof(path), "%s/mini.cut.xz", folder);
	s = read_with("plt_now", &(struct elf_finder){ .open = give, .context = path });
	assert_true(place_of(s, "main") >= 0);
	elf_symbols_free(s);
	s = read_with("split", &(struct elf_finder){ .open = give, .context = path });
	assert_true(place_of(s, "printf@plt") >= 0);
	lacks(s, "specimen_local");
}

static void test_debugdata(void **state)
{
	struct elf_symbols *s = read_with("mini", NULL);

	has_all(s, "mini.whole");
	elf_symbols_free(s);
	lacks(read_with("mini_cut", NULL), "specimen_local");
	lacks(read_with("mini_bomb", NULL), "specimen_local");
}

static void test_plt(void **state)
{
	static const char *const programs[] = { "plt_lazy", "plt_now", "plt_ibt" };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_symbols *s = read_with(programs[i], NULL);
		ptrdiff_t printf_at = place_of(s, "printf@plt");
		uint64_t start;

		if (printf_at < 0 || place_of(s, "specimen_resolved@plt") < 0)
			print_error("%s: a stub without its name\n", programs[i]);
		assert_true(printf_at >= 0);
		assert_true(place_of(s, "specimen_resolved@plt") >= 0);
		assert_string_equal(elf_symbols_find(s, s->names.keys[printf_at] + 5, &start),
				    "printf@plt");
		assert_int_equal(s->names.sizes[printf_at], 16);
		has_all(s, programs[i]);
		elf_symbols_free(s);
	}
}

/* Keys are offsets in the file, whatever the addresses are. */
static void test_apart(void **state)
{
	struct elf_symbols *s = read_with("apart", NULL);
	ptrdiff_t at = place_of(s, "main");
	char path[PATH_MAX];
	struct stat st;

	assert_true(at >= 0);
	snprintf(path, sizeof(path), "%s/apart", folder);
	assert_int_equal(stat(path, &st), 0);
	assert_true(s->names.keys[at] < (uint64_t)st.st_size);
	assert_true(place_of(s, "printf@plt") >= 0);
	elf_symbols_free(s);
}

/* A stripped Go program has every function that the whole one's .symtab has, at its place. */
static void test_go(void **state)
{
	static const char *const programs[] = { "go_exe", "go_pie" };

	if (!go_folder)
		skip();
	folder = go_folder;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_symbols *s = read_with(programs[i], NULL), *w;
		char whole[64];
		size_t checked = 0;

		snprintf(whole, sizeof(whole), "%s.whole", programs[i]);
		w = read_with(whole, NULL);
		assert_true(place_of(s, "main.specimenLocal") >= 0);
		assert_true(place_of(s, "main.(*counter).specimenMethod") >= 0);
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
	folder = specimens;
}

/* The layouts of all Go versions, of which no compiler is at hand. */
static void test_go_layouts(void **state)
{
	static const char *const programs[] = { "go_2", "go_16", "go_18", "go_20" };

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		struct elf_symbols *s = read_with(programs[i], NULL);
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

/* The folder that belongs to a stamp. */
static bool folder_of(const char *stamp, char to[PATH_MAX])
{
	_cleanup_free_ char *real = realpath(stamp, NULL);

	return real && snprintf(to, PATH_MAX, "%s.d", real) < PATH_MAX;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_file_by_build_id),
		cmocka_unit_test(test_debug_file_by_link),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_bias),
		cmocka_unit_test(test_broken_debug_file),
		cmocka_unit_test(test_debugdata),
		cmocka_unit_test(test_plt),
		cmocka_unit_test(test_apart),
		cmocka_unit_test(test_go_layouts),
		cmocka_unit_test(test_go),
	};

	if (argc < 2 || !folder_of(argv[1], specimens)) {
		fprintf(stderr, "usage: %s STAMP [GO-STAMP]\n", argv[0]);
		return 2;
	}
	if (argc > 2 && folder_of(argv[2], go_specimens))
		go_folder = go_specimens;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
