/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame has the same name whoever gives it: the agent's reader and the command's are asked for
 * every function of files of this machine. What the agent alone knows (docs/decisions, symbolize)
 * has no name from the command, and no other one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include "ctl/resolve.h"
#include "shared/cleanup.h"
#include "shared/demangle.h"
#include "shared/elf/elf_symbols.h"
#include "tests/unit/ctl/specimens.h"

struct counts {
	size_t asked, plt;
};

static bool is_plt(const char *name)
{
	size_t bytes = strlen(name);

	return bytes > 4 && !strcmp(name + bytes - 4, "@plt");
}

/* Asks both for the file offset. */
static void compare(const struct elf_symbols *theirs, struct resolve *ours, uint64_t offset,
		    struct counts *counts)
{
	char text[DEMANGLE_OUT_BYTES];
	struct answer answer;
	uint64_t start;
	const char *raw = elf_symbols_find(theirs, offset, &start);

	resolve_find(ours, offset, &answer);
	counts->asked++;
	/* The table's own first entry has no symbol; the agent takes it for what stands before. */
	if (raw &&
	    (is_plt(raw) || ((!strcmp(raw, "_init") || !strcmp(raw, "_fini")) && answer.unnamed))) {
		counts->plt++;
		assert_int_not_equal(answer.unnamed, UNNAMED_NOT);
		return;
	}
	if (!raw) {
		assert_null(answer.places[0].fn);
		return;
	}
	if (!answer.places[0].fn)
		fail_msg("0x%jx: no name, but %s", (uintmax_t)offset, raw);
	assert_string_equal(answer.places[0].fn, demangle(raw, text) ? text : raw);
	assert_string_equal(answer.raw ? answer.raw : answer.places[0].fn, raw);
}

/* At the beginning of each function, in it, and on both sides of its ends. */
static void compare_all(const struct elf_symbols *theirs, struct resolve *ours,
			struct counts *counts)
{
	const struct name_table *n = &theirs->names;

	for (size_t i = 0; i < n->count; i++) {
		const uint64_t key = n->keys[i], size = n->sizes[i];
		const uint64_t at[] = { key, key + size / 2, key + (size ? size - 1 : 0),
					key + size, key ? key - 1 : 0 };

		for (size_t j = 0; j < sizeof(at) / sizeof(at[0]); j++)
			compare(theirs, ours, at[j], counts);
	}
}

static void agree(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image image = { .fd = fd };
	struct elf_symbols *theirs;
	struct resolve ours;
	struct counts counts = { 0 };
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	image.bytes = (uint64_t)st.st_size;
	assert_int_equal(elf_symbols_read(&image, NULL, &theirs), 0);
	resolve_open(&ours, fd, -1, false);
	compare_all(theirs, &ours, &counts);
	print_message("%s: %zu places agree, %zu of them stubs\n", path, counts.asked - counts.plt,
		      counts.plt);
	assert_true(counts.asked > 5);
	resolve_close(&ours);
	elf_symbols_free(theirs);
}

static void test_specimens(void **state)
{
	static const char *const names[] = { "pie.full", "fixed.full", "packed.full",
					     "lld.full", "gold.full",  "pie.stripped" };
	char path[512];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		specimens_path(path, names[i]);
		if (access(path, R_OK) == 0)
			agree(path);
	}
}

/* The C library and the others that we are linked with, as they stand here, and ourselves. */
static void test_libraries(void **state)
{
	agree("/proc/self/exe");
	for (struct link_map *map = _r_debug.r_map; map; map = map->l_next)
		if (map->l_name[0] == '/')
			agree(map->l_name);
}

static char **more_files; /* of the command line */

static void test_more_files(void **state)
{
	for (char **file = more_files; *file; file++)
		agree(*file);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_specimens),
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_more_files),
	};

	specimens_dir = argv[1];
	more_files = argv + 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
