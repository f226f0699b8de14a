/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/rules/rules_keys.h"

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

static void add_wrong(struct rules_parse_state *p, const struct rules_key *k,
		      const struct json_node *value)
{
	char text[RIGHT_BYTES];

	rules_collect_wrong(&p->collect, value, say_right(k, text));
}

static bool take_uint(const struct rules_key *k, const struct json_node *value, void *target)
{
	int64_t number = json_node_i64(value); /* saturates, which is out of range too */

	if (!json_node_is(value, JSON_INTEGER) || number < k->min || number > k->max)
		return false;
	*(uint32_t *)((char *)target + k->offset) = (uint32_t)number;
	return true;
}

static bool take_percent(const struct rules_key *k, const struct json_node *value, void *target)
{
	double number = json_node_double(value); /* 0 for anything but a number */

	if (!(number >= 0.1 && number <= 100.0))
		return false;
	*(uint32_t *)((char *)target + k->offset) = (uint32_t)(number * 1000 + 0.5);
	return true;
}

bool rules_keys_is_string(const struct json_node *value, size_t min, size_t max)
{
	return json_node_is(value, JSON_STRING) && value->bytes >= min && value->bytes <= max &&
	       strlen(value->text) == value->bytes;
}

/* Reads one member. False: the value has the wrong kind or is out of range. */
static bool take_member(struct rules_parse_state *p, const struct rules_key *k,
			const struct json_node *value, void *target)
{
	bool good = false;

	switch (k->kind) {
	case KEY_UINT:
		return take_uint(k, value, target);
	case KEY_PERCENT:
		return take_percent(k, value, target);
	case KEY_STRING:
		good = rules_keys_is_string(value, k->min, k->max);
		break;
	case KEY_ARRAY:
		good = json_node_is(value, JSON_ARRAY);
		break;
	case KEY_OBJECT:
		good = json_node_is(value, JSON_OBJECT);
		break;
	case KEY_ANY:
		good = true;
		break;
	case KEY_NONE:
		break;
	}
	if (good)
		k->set(p, value, target);
	return good;
}

/* `instead` is the key with the same effect; NULL: unknown. */
static void add_unknown(struct rules_parse_state *p, const struct json_node *member,
			const struct rules_key *keys, size_t n, const char *instead)
{
	char known[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < n && at < sizeof(known); i++) {
		if (keys[i].kind == KEY_NONE)
			continue;
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s", at ? ", " : "",
				       keys[i].name);
	}
	rules_collect_add(&p->collect, member,
			  "is no key that is known here; must be one of: %s%s%s%s", known,
			  instead ? " (did you mean " : "", instead ? instead : "",
			  instead ? "?)" : "");
}

static size_t find_key(const struct json_node *member, const struct rules_key *keys, size_t n)
{
	size_t i = 0;

	while (i < n && !json_node_has_key(member, keys[i].name))
		i++;
	return i;
}

uint32_t rules_keys_take(struct rules_parse_state *p, const struct json_node *object,
			 const struct rules_key *keys, size_t n, void *target)
{
	uint32_t seen = 0;

	for (const struct json_node *m = json_node_first(object); m; m = json_node_next(m)) {
		size_t k = find_key(m, keys, n);

		if (k == n) {
			add_unknown(p, m, keys, n, NULL);
			continue;
		}
		seen |= 1u << k;
		if (keys[k].kind == KEY_NONE)
			add_unknown(p, m, keys, n, keys[k].right);
		else if (!take_member(p, &keys[k], m, target))
			add_wrong(p, &keys[k], m);
	}
	for (size_t k = 0; k < n; k++) {
		char right[RIGHT_BYTES];

		if (keys[k].required && !(seen & 1u << k))
			rules_collect_add(&p->collect, object, "lacks \"%s\"; must have it: %s",
					  keys[k].name, say_right(&keys[k], right));
	}
	return seen;
}
