/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/render/neighbour_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "shared/tools/cleanup.h"

/* Returns " (uid 1000, 600 cgroups)"; "" if no directory of the path belongs to a user. */
static char *print_owner(const struct json_node *line)
{
	const struct json_node *uid = json_node_get(line, "neighbour_uid");
	const struct json_node *cgroups = json_node_get(line, "neighbour_cgroups");
	char *text = NULL;
	int n;

	if (!uid)
		return strdup("");
	if (cgroups)
		n = asprintf(&text, " (uid %" PRIu64 ", %" PRIu64 " cgroups)", json_node_u64(uid),
			     json_node_u64(cgroups));
	else
		n = asprintf(&text, " (uid %" PRIu64 ")", json_node_u64(uid));
	return n < 0 ? NULL : text;
}

/* Names a cgroup without a path, by its name if the line has one. */
static char *print_name(const struct json_node *line)
{
	_cleanup_free_ char *name = member_text_value("name", json_node_get(line, "name"));
	bool unverified = json_node_get(line, "name_unverified");
	char *text = NULL;

	if (!name)
		return strdup("(a cgroup without path)");
	return asprintf(&text, "(no path%s) %s", unverified ? ", unverified name" : "", name) < 0
		       ? NULL
		       : text;
}

char *neighbour_text(const struct json_node *line)
{
	_cleanup_free_ char *path =
		member_text_value("neighbour", json_node_get(line, "neighbour"));
	_cleanup_free_ char *owner = path ? print_owner(line) : NULL;
	char *text = NULL;

	if (!path)
		return print_name(line);
	return owner && asprintf(&text, "%s%s", path, owner) >= 0 ? text : NULL;
}
