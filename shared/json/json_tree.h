/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_tree.h: reads a JSON text into nodes (json_node.h) with their places in the text: for rules,
 * because a fault has a place, and for requests and answers, which are small.
 */
#ifndef TROCAR_SHARED_JSON_JSON_TREE_H
#define TROCAR_SHARED_JSON_JSON_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "shared/json/json_node.h"

#define JSON_TREE_BYTES (64u << 20) /* of a text: no count, offset or distance overflows */

struct json_tree {
	const char *text;	 /* borrowed: the JSON text */
	struct json_node *nodes; /* owned; the first is the root */
	uint32_t count, space;
	char *strings; /* owned: keys and scalars, decoded */
	size_t strings_bytes;
};

/* Why json_tree_read refused a text. */
struct json_fault {
	const char *what; /* static: the right form */
	size_t offset;	  /* in the text; its length when the text ends too early */
	bool too_deep;	  /* nested deeper than was allowed */
};

/*
 * Reads a text of one value, at most `nesting` levels deep. The text must live as long as the tree.
 * 0; -EBADMSG: it is not JSON, or too deep, and *ret_fault has the place; -EFBIG: longer than
 * JSON_TREE_BYTES; -ENOMEM. Release with json_tree_done, which accepts a zeroed tree.
 */
int json_tree_read(const char *text, size_t bytes, unsigned int nesting, struct json_tree *ret_tree,
		   struct json_fault *ret_fault);

void json_tree_done(struct json_tree *tree);

#endif
