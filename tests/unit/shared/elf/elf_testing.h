/* SPDX-License-Identifier: BSD-2-Clause */
/* elf_testing.h: the programs of make_specimens, and readings of them. */
#ifndef TROCAR_TESTS_UNIT_SHARED_ELF_ELF_TESTING_H
#define TROCAR_TESTS_UNIT_SHARED_ELF_ELF_TESTING_H

#include "tests/unit/runner/unit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/elf/elf_symbols.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

/* Of the command line; the second "" without a Go compiler. */
static char elf_testing_folder[PATH_MAX], elf_testing_go_folder[PATH_MAX];

/* A specimen, opened; image.fd is the caller's to close. */
static inline struct elf_image elf_testing_open(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	assert_true(snprintf(path, sizeof(path), "%s/%s", folder, name) < PATH_MAX);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	return (struct elf_image){ .fd = fd, .bytes = (uint64_t)st.st_size };
}

static inline struct elf_symbols *elf_testing_read_in(const char *folder, const char *name,
						      const struct elf_finder *finder)
{
	const struct elf_symbols_options options = { .finder = finder };
	struct elf_image image = elf_testing_open(folder, name);
	struct elf_symbols *s;

	assert_int_equal(elf_symbols_read(&image, &options, &s), 0);
	close(image.fd);
	return s;
}

static inline struct elf_symbols *elf_testing_read(const char *name)
{
	return elf_testing_read_in(elf_testing_folder, name, NULL);
}

static inline ptrdiff_t elf_testing_place_of(const struct elf_symbols *s, const char *name)
{
	for (size_t i = 0; i < s->names.count; i++)
		if (strcmp(name_table_text(&s->names, i), name) == 0)
			return (ptrdiff_t)i;
	return -1;
}

/* Every local function of the whole program is in `s`, at its place. */
static inline void elf_testing_has_all(const struct elf_symbols *s, const char *whole)
{
	struct elf_symbols *w = elf_testing_read(whole);
	static const char *const names[] = { "main", "specimen_local", "specimen_labelled" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ptrdiff_t here = elf_testing_place_of(s, names[i]),
			  there = elf_testing_place_of(w, names[i]);
		uint64_t start;

		assert_true(there >= 0);
		assert_true(here >= 0);
		assert_int_equal(s->names.keys[here], w->names.keys[there]);
		assert_int_equal(s->names.sizes[here], w->names.sizes[there]);
		assert_string_equal(elf_symbols_find(s, w->names.keys[there], &start), names[i]);
	}
	elf_symbols_free(w);
}

static inline void elf_testing_lacks(struct elf_symbols *s, const char *name)
{
	assert_int_equal(elf_testing_place_of(s, name), -1);
	elf_symbols_free(s);
}

/* The folder that belongs to a stamp. */
static inline bool elf_testing_folder_of(const char *stamp, char to[PATH_MAX])
{
	_cleanup_free_ char *real = realpath(stamp, NULL);

	return real && snprintf(to, PATH_MAX, "%s.d", real) < PATH_MAX;
}

/* Takes STAMP [GO-STAMP] of the command line; false: they are not there. */
static inline bool elf_testing_start(int argc, char **argv)
{
	if (argc < 2 || !elf_testing_folder_of(argv[1], elf_testing_folder)) {
		fprintf(stderr, "usage: %s STAMP [GO-STAMP]\n", argv[0]);
		return false;
	}
	if (argc > 2 && !elf_testing_folder_of(argv[2], elf_testing_go_folder))
		elf_testing_go_folder[0] = '\0';
	return true;
}

#endif
