/* SPDX-License-Identifier: BSD-2-Clause */
#include "rules_keys.h"

#include <stdio.h>
#include <string.h>

#define RIGHT_BYTES 80

static const char *say_right(const struct rules_key *k, char text[RIGHT_BYTES])
{
	if (k->right)
		return k->right;
	if (k->min == k->max)
		snprintf(text, RIGHT_BYTES, "%u", k->min);
	else
		snprintf(text, RIGHT_BYTES, "a whole number from %u to %u", k->min, k->max);
	return text;
}

static void wrong(struct rules_parse_state *p, const struct rules_key *k, uint32_t node)
{
	char text[RIGHT_BYTES];

	rules_collect_wrong(&p->collect, node, say_right(k, text));
}

static bool take_uint(const struct rules_key *k, struct json_object *json, void *target)
{
	int64_t number;

	if (!json_object_is_type(json, json_type_int))
		return false;
	number = json_object_get_int64(
		json); /* saturates, so that a longer number is out of range */
	if (number < k->min || number > k->max)
		return false;
	*(uint32_t *)((char *)target + k->offset) = (uint32_t)number;
	return true;
}

static bool take_percent(const struct rules_key *k, struct json_object *json, void *target)
{
	double number;

	if (!json_object_is_type(json, json_type_double) &&
	    !json_object_is_type(json, json_type_int))
		return false;
	number = json_object_get_double(json);
	if (!(number >= 0.1 && number <= 100.0)) /* in this form also for NaN */
		return false;
	*(uint32_t *)((char *)target + k->offset) = (uint32_t)(number * 1000 + 0.5);
	return true;
}

bool rules_keys_is_string(struct json_object *json, size_t min, size_t max)
{
	size_t bytes;

	if (!json_object_is_type(json, json_type_string))
		return false;
	bytes = (size_t)json_object_get_string_len(json);
	return bytes >= min && bytes <= max && strlen(json_object_get_string(json)) == bytes;
}

/* Takes one member; false when it is not what the key calls for. */
static bool take(struct rules_parse_state *p, const struct rules_key *k, struct rules_value v,
		 void *target)
{
	bool good = false;

	switch (k->kind) {
	case KEY_UINT:
		return take_uint(k, v.json, target);
	case KEY_PERCENT:
		return take_percent(k, v.json, target);
	case KEY_STRING:
		good = rules_keys_is_string(v.json, k->min, k->max);
		break;
	case KEY_ARRAY:
		good = json_object_is_type(v.json, json_type_array);
		break;
	case KEY_OBJECT:
		good = json_object_is_type(v.json, json_type_object);
		break;
	}
	if (good)
		k->set(p, v, target);
	return good;
}

static void unknown(struct rules_parse_state *p, uint32_t node, const struct rules_key *keys,
		    size_t n)
{
	char known[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < n && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", i ? ", " : "",
				       keys[i].name);
	rules_collect_add(&p->collect, node, "is no key that is known here; must be one of: %s",
			  known);
}

static size_t find_key(const struct rules_parse_state *p, uint32_t node,
		       const struct rules_key *keys, size_t n)
{
	size_t bytes, i;
	const char *name = rules_scan_key(&p->scan, node, &bytes);

	for (i = 0; i < n; i++)
		if (strlen(keys[i].name) == bytes && memcmp(keys[i].name, name, bytes) == 0)
			break;
	return i;
}

/* Takes an object's members by its table of keys; returns a bit per key that is there, good or not.
 */
uint32_t rules_keys_take(struct rules_parse_state *p, struct rules_value v,
			 const struct rules_key *keys, size_t n, void *target)
{
	const struct rules_node *nodes = p->scan.nodes;
	uint32_t seen = 0;

	for (uint32_t m = rules_scan_first(&p->scan, v.node); m != RULES_NO_NODE;
	     m = nodes[m].next) {
		struct rules_value member = { .node = m };
		size_t k = find_key(p, m, keys, n);

		if (nodes[m].hidden)
			continue;
		if (k == n) {
			unknown(p, m, keys, n);
			continue;
		}
		seen |= 1u << k;
		json_object_object_get_ex(v.json, keys[k].name, &member.json);
		if (!take(p, &keys[k], member, target))
			wrong(p, &keys[k], m);
	}
	for (size_t k = 0; k < n; k++) {
		char right[RIGHT_BYTES];

		if (keys[k].required && !(seen & 1u << k))
			rules_collect_add(&p->collect, v.node, "lacks \"%s\"; must have it: %s",
					  keys[k].name, say_right(&keys[k], right));
	}
	return seen;
}
