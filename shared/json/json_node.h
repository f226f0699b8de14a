/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_node.h: one value of a JSON text that json_tree.h has read: its kind, its place, and its
 * contents. Every function here accepts NULL for a value that is missing. If an object has several
 * members with the same key, the functions see only the last.
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
 * Nodes are in one array in the order of the text, and refer to each other by distances: the first
 * child of a node is the next node in the array.
 */
struct json_node {
	const char *text; /* of a scalar: its characters, with a NUL after them; else NULL */
	const char *key;  /* of a member: its key, with a NUL after it; else NULL */
	uint32_t bytes;	  /* of text */
	union {
		uint32_t key_bytes; /* of a member */
		uint32_t index;	    /* of an element, from 0 */
	};
	uint32_t offset; /* of the value's first byte in the JSON text */
	uint32_t extent; /* how many bytes of the JSON text the value takes */
	uint32_t up;	 /* distance back to the parent, in nodes; 0: this is the root */
	uint32_t next;	 /* distance to the next member or element, in nodes; 0: this is the last */
	uint32_t children; /* number of members or elements */
	uint8_t kind;	   /* enum json_kind */
	bool hidden;	   /* the key occurs again later in the object */
	bool repeats;	   /* the key occurred before in the object */
};

bool json_node_is(const struct json_node *node, enum json_kind kind);

/* Whether the value is a string of exactly these characters. */
bool json_node_equals(const struct json_node *node, const char *text);

/* Returns the characters of a string (there may be a NUL among them), NULL for any other value. */
const char *json_node_string(const struct json_node *node);

/* Whether the value is `true`. */
bool json_node_is_true(const struct json_node *node);

/* Returns a number, or the nearest that the type can hold; 0 for any other value. */
int64_t json_node_i64(const struct json_node *node);
uint64_t json_node_u64(const struct json_node *node);
double json_node_double(const struct json_node *node);

/* Returns the object or array that contains the value, NULL for the root. */
const struct json_node *json_node_parent(const struct json_node *node);

/* Step through members or elements in the order of the text; NULL: there are none, or no more. */
const struct json_node *json_node_first(const struct json_node *node);
const struct json_node *json_node_next(const struct json_node *node);

/* Returns the number of elements of an array; 0 for any other value. */
uint32_t json_node_elements(const struct json_node *node);

bool json_node_has_key(const struct json_node *member, const char *key);

/* Returns the member with that key, also if it is null; NULL: no such member, or not an object. */
const struct json_node *json_node_member(const struct json_node *object, const char *key);

/* As json_node_member, but NULL also for null. */
const struct json_node *json_node_get(const struct json_node *object, const char *key);

#endif
