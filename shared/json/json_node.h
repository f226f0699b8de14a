/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_node.h: one value of a JSON text that json_tree.h has read: what it is, where it stands, and
 * what is in it. A value that is missing is NULL, and every function here takes that. Of the
 * members of an object that have the same key only the last is seen.
 */
#ifndef TROCAR_SHARED_JSON_JSON_NODE_H
#define TROCAR_SHARED_JSON_JSON_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind {
	JSON_NULL,
	JSON_BOOL,
	JSON_INTEGER, /* a number without fraction and exponent, of any length */
	JSON_REAL,    /* any other number */
	JSON_STRING,
	JSON_ARRAY,
	JSON_OBJECT,
};

/*
 * Nodes stand in one array in the order of the text, so that distances lead from one to another:
 * the first child of a node is the next in the array.
 */
struct json_node {
	const char *text; /* scalars: the characters, with a NUL behind them; else NULL */
	const char *key;  /* of a member: likewise; else NULL */
	uint32_t bytes;	  /* of text */
	union {
		uint32_t key_bytes; /* of a member */
		uint32_t index;	    /* of an element, from 0 */
	};
	uint32_t offset;   /* of the value's first byte in the JSON text */
	uint32_t extent;   /* how many bytes of the JSON text the value takes */
	uint32_t up;	   /* this many nodes before this one is its parent; 0: the root */
	uint32_t next;	   /* this many nodes behind is the next member or element; 0: the last */
	uint32_t children; /* members or elements */
	uint8_t kind;	   /* enum json_kind */
	bool hidden;	   /* the same key comes again later in the object */
	bool repeats;	   /* the same key came before in the object */
};

bool json_node_is(const struct json_node *node, enum json_kind kind);

/* Whether it is a string of exactly these characters. */
bool json_node_equals(const struct json_node *node, const char *text);

/* The characters of a string (there may be a NUL among them), NULL for any other value. */
const char *json_node_string(const struct json_node *node);

/* Whether it is `true`. */
bool json_node_is_true(const struct json_node *node);

/* A number, as close to it as the type comes; 0 for what is none. */
int64_t json_node_i64(const struct json_node *node);
uint64_t json_node_u64(const struct json_node *node);
double json_node_double(const struct json_node *node);

/* The object or array that it is in, NULL for the root. */
const struct json_node *json_node_parent(const struct json_node *node);

/* The members or elements, in the order of the text; NULL: none, or no more. */
const struct json_node *json_node_first(const struct json_node *node);
const struct json_node *json_node_next(const struct json_node *node);

/* How many elements an array has; 0 for what is none. */
uint32_t json_node_elements(const struct json_node *node);

bool json_node_has_key(const struct json_node *member, const char *key);

/* The member of that key, be it null; NULL where there is none, or no object. */
const struct json_node *json_node_member(const struct json_node *object, const char *key);

/* The same, but null counts as missing. */
const struct json_node *json_node_get(const struct json_node *object, const char *key);

#endif
