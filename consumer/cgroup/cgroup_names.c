/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/cgroup_names.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/cgroup/cgroups.h"

static const char gone[] =
	"the cgroup ended before the session did, or its directory cannot be looked up";
static const char not_yet[] = "the search for its path had not ended when the line was written";
static const char no_memory[] = "there was no memory for its path";

void cgroup_names_init(struct cgroup_names *n)
{
	idmap_init(&n->by_id, CGROUP_NAMES_MAX);
	idmap_init(&n->above, CGROUP_NAMES_ABOVE_MAX);
}

void cgroup_names_done(struct cgroup_names *n)
{
	idmap_free(&n->by_id, free);
	idmap_free(&n->above, free);
}

/* Keeps the path, or "". Returns the kept path; NULL without space. */
static const char *keep_path(struct cgroup_names *n, uint64_t id, const char *path)
{
	char *copy = strdup(path);

	free(idmap_remove(&n->by_id, id));
	if (copy && idmap_put(&n->by_id, id, copy) == 0)
		return copy;
	free(copy);
	return NULL;
}

const char *cgroup_names_ask(struct cgroup_names *n, struct cgroups *c, uint64_t id,
			     uint32_t pid_hint)
{
	const char *kept = n && id ? idmap_get(&n->by_id, id) : NULL, *path;

	if (kept && kept[0])
		return kept;
	path = cgroups_path(c, id, pid_hint);
	if (!n || !id)
		return path;
	if (path || !kept)
		kept = keep_path(n, id, path ? path : "");
	return path && kept ? kept : path;
}

void cgroup_names_note_above(struct cgroup_names *n, struct cgroups *c, uint64_t id,
			     const uint64_t above[CGROUP_NAMES_LEVELS])
{
	size_t bytes = CGROUP_NAMES_LEVELS * sizeof(*above);
	uint64_t *copy;

	if (!n || idmap_get(&n->above, id))
		return;
	copy = malloc(bytes);
	if (!copy)
		return;
	memcpy(copy, above, bytes);
	if (idmap_put(&n->above, id, copy) < 0) {
		free(copy);
		return;
	}
	for (size_t i = 0; i < CGROUP_NAMES_LEVELS; i++)
		if (above[i])
			(void)cgroup_names_ask(n, c, above[i], 0);
}

const char *cgroup_names_near(struct cgroup_names *n, struct cgroups *c, uint64_t id)
{
	const char *path = cgroup_names_ask(n, c, id, 0);
	const uint64_t *above = n ? idmap_get(&n->above, id) : NULL;

	for (size_t i = CGROUP_NAMES_LEVELS; !path && above && i > 0; i--)
		if (above[i - 1])
			path = cgroup_names_ask(n, c, above[i - 1], 0);
	return path;
}

bool cgroup_names_await(const struct cgroup_names *n, const struct cgroups *c)
{
	const char *path;
	uint64_t id;

	idmap_for_each (&n->by_id, i, id, path)
		if (!path[0] && cgroups_look_awaits(c, id))
			return true;
	return false;
}

void cgroup_names_fill(struct cgroup_names *n, struct cgroups *c, uint64_t id, char **path,
		       const char **why)
{
	const char *found = *path ? NULL : cgroup_names_ask(n, c, id, 0);

	if (*path)
		return;
	*path = found ? strdup(found) : NULL;
	if (*path)
		*why = NULL;
	else if (found)
		*why = no_memory;
	else
		*why = cgroups_look_awaits(c, id) ? not_yet : gone;
}
