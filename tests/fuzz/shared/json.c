/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.c: texts for the strict reader, with json-c beside it. What the reader takes json-c takes
 * too, and both see the same values; what json-c prints of a text in UTF-8 the reader takes.
 */
#include <json-c/json.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/json_reader.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/utf8.h"

#define NESTING 24
#define OTHERS_NESTING                                                            \
	(NESTING + 1) /* json-c counts the scalars within the innermost container \
		       */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define must(yes)                \
	do {                     \
		if (!(yes))      \
			abort(); \
	} while (0)

static void put_object(json_object **object)
{
	json_object_put(*object);
}

static json_object *read_with_json_c(const char *text, size_t bytes)
{
	json_tokener *tokener = json_tokener_new_ex(OTHERS_NESTING);
	json_object *object;
	enum json_tokener_error error;

	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int)bytes);
	if (json_tokener_get_error(tokener) == json_tokener_continue)
		object = json_tokener_parse_ex(tokener, " ", 1); /* ends a bare number or word */
	error = json_tokener_get_error(tokener);
	json_tokener_free(tokener);
	if (error == json_tokener_success)
		return object;
	json_object_put(object);
	return NULL;
}

static bool same_number(const struct json_node *node, json_object *other)
{
	double a = json_node_double(node), b = json_object_get_double(other);

	/* json-c cuts whole numbers at 64 bits. */
	if (node->kind == JSON_INTEGER && fabs(a) < 1e18)
		return json_node_i64(node) == json_object_get_int64(other);
	return node->kind == JSON_INTEGER || a == b;
}

static void compare(const struct json_node *node, json_object *other);

/* Keys of json-c end at a NUL, so that such an object cannot be compared. */
static void compare_members(const struct json_node *object, json_object *other)
{
	int members = 0;

	for (const struct json_node *m = json_node_first(object); m; m = json_node_next(m))
		if (strlen(m->key) != m->key_bytes)
			return;
	for (const struct json_node *m = json_node_first(object); m; m = json_node_next(m)) {
		json_object *value = NULL;

		must(json_object_object_get_ex(other, m->key, &value));
		must(json_node_parent(m) == object && json_node_member(object, m->key) == m);
		compare(m, value);
		members++;
	}
	must(json_object_object_length(other) == members);
}

static void compare_elements(const struct json_node *array, json_object *other)
{
	size_t i = 0;

	must(json_object_array_length(other) == json_node_elements(array));
	for (const struct json_node *m = json_node_first(array); m; m = json_node_next(m), i++) {
		must(m->index == i && json_node_parent(m) == array);
		compare(m, json_object_array_get_idx(other, i));
	}
}

static void compare(const struct json_node *node, json_object *other)
{
	static const enum json_type types[] = {
		[JSON_NULL] = json_type_null,	  [JSON_BOOL] = json_type_boolean,
		[JSON_INTEGER] = json_type_int,	  [JSON_REAL] = json_type_double,
		[JSON_STRING] = json_type_string, [JSON_ARRAY] = json_type_array,
		[JSON_OBJECT] = json_type_object,
	};

	must(json_object_get_type(other) == types[node->kind]);
	if (node->kind == JSON_OBJECT)
		compare_members(node, other);
	else if (node->kind == JSON_ARRAY)
		compare_elements(node, other);
	else if (node->kind == JSON_STRING)
		must(node->bytes == (size_t)json_object_get_string_len(other) &&
		     !memcmp(node->text, json_object_get_string(other), node->bytes + 1));
	else if (node->kind == JSON_BOOL)
		must(json_node_is_true(node) == json_object_get_boolean(other));
	else if (node->kind != JSON_NULL)
		must(same_number(node, other));
}

/* Each value's place holds that value and nothing else. */
static void check_places(const struct json_tree *tree)
{
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct json_node *n = &tree->nodes[i];
		struct json_reader r;

		json_reader_init(&r, tree->text + n->offset, n->extent, NESTING);
		must(json_reader_skip(&r) && json_reader_end(&r));
		must(!n->text || strlen(n->text) <= n->bytes);
		must(!n->hidden || n->next);
	}
}

static void check_taken(const struct json_tree *tree, const char *text, size_t bytes)
{
	_cleanup_(put_object) json_object *other = read_with_json_c(text, bytes);

	must(other || tree->nodes[0].kind == JSON_NULL);
	compare(tree->nodes, other);
	if (tree->count <= 256)
		check_places(tree);
}

/* json-c prints numbers that it has read as they came, also "01.e1", which it takes. */
static void forget_spelling(json_object *value)
{
	if (json_object_is_type(value, json_type_double))
		json_object_set_double(value, json_object_get_double(value));
	for (size_t i = 0;
	     json_object_is_type(value, json_type_array) && i < json_object_array_length(value);
	     i++)
		forget_spelling(json_object_array_get_idx(value, i));
	if (!json_object_is_type(value, json_type_object))
		return;
	json_object_object_foreach(value, key, member)
	{
		(void)key;
		forget_spelling(member);
	}
}

/* What json-c prints is JSON, but for two numbers that are none. */
static void check_printed(const char *text, size_t bytes)
{
	_cleanup_(put_object) json_object *other = NULL;
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct json_fault fault;
	const char *printed;
	size_t offset, n;

	if (!utf8_is_text(text, bytes, &offset))
		return;
	other = read_with_json_c(text, bytes);
	forget_spelling(other);
	printed = json_object_to_json_string_length(other, JSON_C_TO_STRING_PLAIN, &n);
	if (!strstr(printed, "NaN") && !strstr(printed, "Infinity"))
		must(json_tree_read(printed, n, NESTING + 1, &tree, &fault) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	/* Of the exact size, so that ASan sees a read behind it. */
	_cleanup_free_ char *text = malloc(bytes ? bytes : 1);
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct json_fault fault;
	int r;

	if (bytes)
		memcpy(text, data, bytes);
	r = json_tree_read(text, bytes, NESTING, &tree, &fault);
	if (r == 0) {
		check_taken(&tree, text, bytes);
	} else {
		must(fault.what && fault.offset <= bytes);
		check_printed(text, bytes);
	}
	return 0;
}
