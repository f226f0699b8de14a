/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/json/json_node.h"

#include <stdlib.h>
#include <string.h>

bool json_node_is(const struct json_node *node, enum json_kind kind)
{
	return node && node->kind == kind;
}

bool json_node_equals(const struct json_node *node, const char *text)
{
	return json_node_is(node, JSON_STRING) && node->bytes == strlen(text) &&
	       !memcmp(node->text, text, node->bytes);
}

const char *json_node_string(const struct json_node *node)
{
	return json_node_is(node, JSON_STRING) ? node->text : NULL;
}

bool json_node_is_true(const struct json_node *node)
{
	return json_node_is(node, JSON_BOOL) && node->text[0] == 't';
}

static bool is_number(const struct json_node *node)
{
	return json_node_is(node, JSON_INTEGER) || json_node_is(node, JSON_REAL);
}

/* For a number out of range, strtoll(3), strtoull(3) and strtod(3) return the nearest limit. */
int64_t json_node_i64(const struct json_node *node)
{
	return is_number(node) ? strtoll(node->text, NULL, 10) : 0;
}

uint64_t json_node_u64(const struct json_node *node)
{
	return is_number(node) && node->text[0] != '-' ? strtoull(node->text, NULL, 10) : 0;
}

double json_node_double(const struct json_node *node)
{
	return is_number(node) ? strtod(node->text, NULL) : 0;
}

const struct json_node *json_node_parent(const struct json_node *node)
{
	return node && node->up ? node - node->up : NULL;
}

static const struct json_node *skip_hidden(const struct json_node *node)
{
	/* The last member with a key is not hidden, so a hidden member always has a next one. */
	while (node->hidden)
		node += node->next;
	return node;
}

const struct json_node *json_node_first(const struct json_node *node)
{
	return node && node->children ? skip_hidden(node + 1) : NULL;
}

const struct json_node *json_node_next(const struct json_node *node)
{
	return node && node->next ? skip_hidden(node + node->next) : NULL;
}

uint32_t json_node_elements(const struct json_node *node)
{
	return json_node_is(node, JSON_ARRAY) ? node->children : 0;
}

bool json_node_has_key(const struct json_node *member, const char *key)
{
	return member && member->key && member->key_bytes == strlen(key) &&
	       !memcmp(member->key, key, member->key_bytes);
}

const struct json_node *json_node_member(const struct json_node *object, const char *key)
{
	const struct json_node *member = json_node_first(object);

	while (member && !json_node_has_key(member, key))
		member = json_node_next(member);
	return member;
}

const struct json_node *json_node_get(const struct json_node *object, const char *key)
{
	const struct json_node *member = json_node_member(object, key);

	return json_node_is(member, JSON_NULL) ? NULL : member;
}
