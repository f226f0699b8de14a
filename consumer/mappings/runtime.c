/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/mappings/runtime.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "shared/tools/macro.h"

enum where { EXE, LIBRARY };

static const struct row {
	const char *name;
	enum where where;
	const char *start, *end, *path;
} rows[] = {
#define RUNTIME(name_, where_, start_, end_, path_) \
	{ .name = (name_), .where = (where_), .start = (start_), .end = (end_), .path = (path_) },
#include "consumer/mappings/runtimes.def"
#undef RUNTIME
};

/*
 * Returns the length of the version at `text`, digits with dots between them; 0 when there is none.
 */
static size_t version_length(const char *text)
{
	size_t length = 0;

	while (isdigit((unsigned char)text[length]) ||
	       (length > 0 && text[length] == '.' && isdigit((unsigned char)text[length + 1])))
		length++;
	return length;
}

static void copy_version(const char *text, size_t length, struct runtime *runtime)
{
	length = MIN(length, sizeof(runtime->version) - 1);
	memcpy(runtime->version, text, length);
	runtime->version[length] = '\0';
}

/*
 * Finds the version after `start` at the beginning of a folder's name; of several folders takes the
 * one closest to the file.
 */
static bool version_in_path(const char *path, const char *start, size_t start_length,
			    struct runtime *runtime)
{
	bool found = false;

	for (const char *folder = strchr(path, '/'); folder; folder = strchr(folder + 1, '/')) {
		const char *name = folder + 1;
		size_t length;

		if (strncmp(name, start, start_length) != 0)
			continue;
		length = version_length(name + start_length);
		if (length == 0 || !strchr(name, '/'))
			continue;
		copy_version(name + start_length, length, runtime);
		found = true;
	}
	return found;
}

/* Tries each folder start between the bars of `starts`. */
static void versions_in_path(const char *path, const char *starts, struct runtime *runtime)
{
	for (;;) {
		size_t length = strcspn(starts, "|");

		if (version_in_path(path, starts, length, runtime) || starts[length] == '\0')
			return;
		starts += length + 1;
	}
}

/* Whether the base name fits the row; *ret_version is where its version begins. */
static bool fits_row(const struct row *row, const char *base, const char **ret_version,
		     size_t *ret_length)
{
	size_t start = strlen(row->start), length;
	const char *rest;

	if (strncmp(base, row->start, start) != 0)
		return false;
	length = version_length(base + start);
	rest = base + start + length;
	if (row->end[0] == '*' ? isalpha((unsigned char)*rest) : strcmp(rest, row->end) != 0)
		return false;
	*ret_version = base + start;
	*ret_length = length;
	return true;
}

bool runtime_of_path(const char *path, bool exe, struct runtime *ret_runtime)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *version;
	size_t length;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		if ((row->where == EXE) != exe || !fits_row(row, base, &version, &length))
			continue;
		*ret_runtime =
			(struct runtime){ .name = row->name, .how = exe ? "exe" : "library" };
		copy_version(version, length, ret_runtime);
		if (length == 0 && row->path)
			versions_in_path(path, row->path, ret_runtime);
		return true;
	}
	return false;
}
