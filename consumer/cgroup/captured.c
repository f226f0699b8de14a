/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/captured.h"

#include <errno.h>
#include <string.h>

#include "shared/tools/path_text.h"

int captured_add(struct captured *c, uint64_t cgroup_id, const char *path)
{
	if (c->count == CAPTURED_MAX)
		return -ENOSPC;
	c->cgroups[c->count++] = (struct captured_cgroup){ .id = cgroup_id, .path = path };
	return 0;
}

void captured_remove(struct captured *c, const char *path)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->cgroups[i].path == path) {
			c->cgroups[i] = c->cgroups[--c->count];
			return;
		}
}

bool captured_holds(const struct captured *c, uint64_t cgroup_id, const char *path)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->cgroups[i].id == cgroup_id ||
		    (path && path_text_is_within(path, c->cgroups[i].path)))
			return true;
	return false;
}
