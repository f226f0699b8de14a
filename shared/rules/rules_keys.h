/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_keys.h: tables of the keys that a JSON object may have. Such a table reads every object of
 * a rules text, so that an unknown key, a wrong type, a value out of range and a missing key give
 * the same messages everywhere. Only shared/rules/ includes it.
 */
#ifndef TROCAR_SHARED_RULES_RULES_KEYS_H
#define TROCAR_SHARED_RULES_RULES_KEYS_H

#include "shared/json/json_tree.h"
#include "shared/rules/rules_internal.h"

/* A running parse. collect.error keeps -ENOMEM; everything else is a fault. */
struct rules_parse_state {
	struct json_tree tree;
	struct rules_collect collect;
	struct rules *rules;
	struct rules_place *places;			/* by rule */
	const struct json_node *rules_at, *defaults_at; /* their values in the text, or NULL */
	uint32_t n_comms;				/* of all rules so far */
	struct rule defaults; /* values for rules without their own; labels owned */
};

enum rules_key_kind {
	KEY_UINT,    /* whole number in [min, max], stored at `offset` as uint32_t */
	KEY_PERCENT, /* number from 0.1 to 100, stored at `offset` as uint32_t of 0.001 % */
	KEY_STRING,  /* of min to max bytes without NUL, passed to `set` */
	KEY_ARRAY,
	KEY_OBJECT,
	KEY_ANY,  /* `set` checks the value */
	KEY_NONE, /* not a key, but often tried: `right` is the key with the same effect */
};

struct rules_key {
	const char *name;
	enum rules_key_kind kind;
	bool required;
	uint32_t min, max;
	size_t offset;
	const char *right; /* the right form, in words; NULL for KEY_UINT: made from the range */
	void (*set)(struct rules_parse_state *p, const struct json_node *value, void *target);
};

/*
 * Reads an object's members by its table of keys (at most 32). Returns a bit for each key that is
 * present, valid or faulty. `offset` counts from `target`, and `set` gets `target`. A faulty key
 * leaves its place in the target unchanged.
 */
uint32_t rules_keys_take(struct rules_parse_state *p, const struct json_node *object,
			 const struct rules_key *keys, size_t n, void *target);

/* Returns whether the value is a string of min to max bytes without NUL. */
bool rules_keys_is_string(const struct json_node *value, size_t min, size_t max);

/* Default window of a pressure threshold. */
#define RULES_WINDOW_DEFAULT_MS 2000

/* Reads the array `when` into the rule `target`. */
void rules_when_set(struct rules_parse_state *p, const struct json_node *value, void *target);

/*
 * Reads the object `defaults`, NULL for none, into p->defaults, which is first set to the built-in
 * defaults.
 */
void rules_rule_defaults(struct rules_parse_state *p, const struct json_node *value);

/* Reads one rule, an object, into *ret_rule; sets p->defaults first. */
void rules_rule_take(struct rules_parse_state *p, const struct json_node *value,
		     struct rule *ret_rule);

#endif
