/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/delegated.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "consumer/cgroup/cgroups.h"

static bool is_at_or_below(const char *path, const char *above)
{
	size_t bytes = strlen(above);

	return !strncmp(path, above, bytes) && (!path[bytes] || path[bytes] == '/');
}

/* Adds the directory, whose path is the first `bytes` bytes of `path`. Returns its number plus 1.
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

size_t delegated_find(struct delegated_list *list, struct cgroups *cgroups, const char *path)
{
	struct stat st;
	size_t bytes;

	for (size_t i = 0; i < list->count; i++)
		if (is_at_or_below(path, list->items[i].path))
			return i + 1;
	if (!cgroups_delegated(cgroups, path, &st, &bytes))
		return 0;
	return add_directory(list, path, bytes, &st);
}

void delegated_done(struct delegated_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct delegated_list){};
}
