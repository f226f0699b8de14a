/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/paths.h"

#include <stdio.h>
#include <string.h>

#define KEYS_MAX 4

const struct json_node *paths_get(const struct json_node *object, const char *path)
{
	char key[64];

	for (int i = 0; i < KEYS_MAX && object; i++) {
		size_t bytes = strcspn(path, ".");

		snprintf(key, sizeof(key), "%.*s", (int)bytes, path);
		object = json_node_get(object, key);
		if (!path[bytes])
			return object;
		path += bytes + 1;
	}
	return NULL;
}

uint64_t paths_number(const struct json_node *object, const char *path)
{
	const struct json_node *value = paths_get(object, path);

	return json_node_is(value, JSON_INTEGER) ? json_node_u64(value) : 0;
}
