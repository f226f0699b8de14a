/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/delegated.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "consumer/cgroup/cgroups.h"
#include "shared/tools/path_text.h"

/*
 * Adds the directory with the first `bytes` bytes of `path` as its path. Returns its number plus 1.
 */
static size_t add_directory(struct delegated_list *list, const char *path, size_t bytes,
			    const struct stat *st)
{
	struct delegated *one;

	if (!list->items)
		list->items = calloc(DELEGATED_MAX, sizeof(*list->items));
	if (!list->items || list->count == DELEGATED_MAX)
		return 0;
	one = &list->items[list->count];
	*one = (struct delegated){ strndup(path, bytes), st->st_ino, st->st_uid };
	return one->path ? ++list->count : 0;
}

/* Returns the bytes of the directory that `path` is in, without the '/' behind it. */
static size_t above_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

static bool is_roots(const struct delegated_list *list, const char *path, size_t bytes)
{
	return list->roots && !strncmp(path, list->roots, bytes) && !list->roots[bytes];
}

static void keep_roots(struct delegated_list *list, const char *path, size_t bytes)
{
	if (!bytes || is_roots(list, path, bytes))
		return;
	free(list->roots);
	list->roots = strndup(path, bytes);
}

size_t delegated_find(struct delegated_list *list, struct cgroups *cgroups, const char *path)
{
	size_t above = above_bytes(path), bytes;
	struct stat st;

	for (size_t i = 0; i < list->count; i++)
		if (path_text_is_within(path, list->items[i].path))
			return i + 1;
	bytes = is_roots(list, path, above) ? above : 0;
	if (cgroups_delegated(cgroups, path, &st, &bytes))
		return add_directory(list, path, bytes, &st);
	if (bytes >= above)
		keep_roots(list, path, above);
	return 0;
}

void delegated_done(struct delegated_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	free(list->roots);
	*list = (struct delegated_list){};
}
