/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_keys.h: tables of what a JSON object may hold. Every object of a rules text is taken by
 * one, so that an unknown key, a wrong type, a value out of range and a missing key are all said
 * the same way. Only shared/rules/ includes it.
 */
#ifndef TROCAR_SHARED_RULES_RULES_KEYS_H
#define TROCAR_SHARED_RULES_RULES_KEYS_H

#include "shared/json/json_tree.h"
#include "shared/rules/rules_internal.h"

/* A parse under way. Memory that runs out sticks in collect.error; the rest are faults. */
struct rules_parse_state {
	struct json_tree tree;
	struct rules_collect collect;
	struct rules *rules;
	struct rules_place *places; /* by rule */
};

enum rules_key_kind {
	KEY_UINT,    /* whole number in [min, max], stored at `offset` as uint32_t */
	KEY_PERCENT, /* number from 0.1 to 100, stored at `offset` as uint32_t of 0.001 % */
	KEY_STRING,  /* of min to max bytes without NUL, given to `set` */
	KEY_ARRAY,
	KEY_OBJECT,
};

struct rules_key {
	const char *name;
	enum rules_key_kind kind;
	bool required;
	uint32_t min, max;
	size_t offset;
	const char *right; /* what is right, in words; NULL for KEY_UINT: made from the range */
	void (*set)(struct rules_parse_state *p, const struct json_node *value, void *target);
};

/*
 * Takes an object's members by its table of keys (at most 32); returns a bit per key that is there,
 * good or not. `target` is what the keys' offsets count from and what `set` gets. A key that is
 * faulty leaves its place in the target as it was.
 */
uint32_t rules_keys_take(struct rules_parse_state *p, const struct json_node *object,
			 const struct rules_key *keys, size_t n, void *target);

/* Whether it is a string of min to max bytes without NUL. */
bool rules_keys_is_string(const struct json_node *value, size_t min, size_t max);

/* Takes one rule, an object, into *ret_rule (all defaults set first). */
void rules_rule_take(struct rules_parse_state *p, const struct json_node *value,
		     struct rule *ret_rule);

#endif
