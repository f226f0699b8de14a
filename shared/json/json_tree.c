/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/json/json_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/json_reader.h"
#include "shared/tools/cleanup.h"

#define FIRST_NODES 64
#define FEW_MEMBERS 16 /* up to this number comparing all pairs is faster than sorting */

/* A tree during the read. */
struct growing {
	struct json_reader reader;
	struct json_tree tree;
};

static int read_value(struct growing *g, struct json_node node, uint32_t parent);

static int add_node(struct json_tree *t, const struct json_node *node)
{
	if (t->count == t->space) {
		uint32_t space = t->space ? t->space * 2 : FIRST_NODES;
		struct json_node *larger = reallocarray(t->nodes, space, sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		t->nodes = larger;
		t->space = space;
	}
	t->nodes[t->count++] = *node;
	return 0;
}

/* Copies the decoded characters of a text; *ret_bytes excludes the NUL. */
static const char *keep_string(struct json_tree *t, const struct json_text *text,
			       uint32_t *ret_bytes)
{
	char *kept = t->strings + t->strings_bytes;
	size_t bytes = json_reader_decode(text, kept);

	kept[bytes] = '\0';
	t->strings_bytes += bytes + 1;
	*ret_bytes = (uint32_t)bytes;
	return kept;
}

static int compare_keys(const struct json_node *a, const struct json_node *b)
{
	if (a->key_bytes != b->key_bytes)
		return a->key_bytes < b->key_bytes ? -1 : 1;
	return memcmp(a->key, b->key, a->key_bytes);
}

static int compare_members(const void *a, const void *b)
{
	const struct json_node *x = *(struct json_node *const *)a;
	const struct json_node *y = *(struct json_node *const *)b;
	int r = compare_keys(x, y);

	return r ? r : (x > y) - (x < y);
}

static void mark_repeated(struct json_node *first, struct json_node *again)
{
	first->hidden = true;
	again->repeats = true;
}

static void find_repeated_few(struct json_node *object)
{
	struct json_node *last = object + 1;

	for (uint32_t i = 1; i < object->children; i++) {
		last += last->next;
		for (struct json_node *m = object + 1; m != last; m += m->next) {
			if (m->hidden || compare_keys(m, last) != 0)
				continue;
			mark_repeated(m, last);
			break;
		}
	}
}

/* Marks the members of an object with keys that occur more than once. */
static int find_repeated(struct json_node *object)
{
	_cleanup_free_ struct json_node **members = NULL;
	struct json_node *member = object + 1;

	if (object->children <= FEW_MEMBERS) {
		find_repeated_few(object);
		return 0;
	}
	members = calloc(object->children, sizeof(struct json_node *));
	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < object->children; i++, member += member->next)
		members[i] = member;
	qsort(members, object->children, sizeof(struct json_node *), compare_members);
	for (uint32_t i = 1; i < object->children; i++)
		if (compare_keys(members[i - 1], members[i]) == 0)
			mark_repeated(members[i - 1], members[i]);
	return 0;
}

/* Reads a child of `parent`. *last is the index of the previous child; sets it to this one's. */
static int read_child(struct growing *g, struct json_node child, uint32_t parent, uint32_t *last)
{
	uint32_t index = g->tree.count;
	int r = read_value(g, child, parent);

	if (r < 0)
		return r;
	if (g->tree.nodes[parent].children++)
		g->tree.nodes[*last].next = index - *last;
	*last = index;
	return 0;
}

static int read_object(struct growing *g, uint32_t object)
{
	struct json_text key;
	uint32_t last = 0;

	json_reader_object(&g->reader);
	while (json_reader_key(&g->reader, &key)) {
		struct json_node member = { 0 };
		int r;

		member.key = keep_string(&g->tree, &key, &member.key_bytes);
		r = read_child(g, member, object, &last);
		if (r < 0)
			return r;
	}
	return g->reader.fault ? -EBADMSG : find_repeated(&g->tree.nodes[object]);
}

static int read_array(struct growing *g, uint32_t array)
{
	struct json_node element = { 0 };
	uint32_t last = 0;

	json_reader_array(&g->reader);
	for (; json_reader_element(&g->reader); element.index++) {
		int r = read_child(g, element, array, &last);

		if (r < 0)
			return r;
	}
	return g->reader.fault ? -EBADMSG : 0;
}

static enum json_kind find_kind(char first)
{
	switch (first) {
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_STRING;
	case 't':
	case 'f':
		return JSON_BOOL;
	case 'n':
		return JSON_NULL;
	default:
		return JSON_INTEGER;
	}
}

static bool has_fraction(const struct json_text *number)
{
	for (size_t i = 0; i < number->bytes; i++)
		if (strchr(".eE", number->data[i]))
			return true;
	return false;
}

static int read_scalar(struct growing *g, struct json_node *node)
{
	struct json_text text = { .data = g->reader.at };

	if (node->kind == JSON_STRING)
		json_reader_string(&g->reader, false, &text);
	else if (json_reader_skip(&g->reader))
		text.bytes = (size_t)(g->reader.at - text.data);
	if (g->reader.fault)
		return -EBADMSG;
	if (node->kind == JSON_INTEGER && has_fraction(&text))
		node->kind = JSON_REAL;
	node->text = keep_string(&g->tree, &text, &node->bytes);
	return 0;
}

/* Reads the next value; `node` has its key. The reader's nesting limits the recursion. */
static int read_value(struct growing *g, struct json_node node, uint32_t parent)
{
	uint32_t index = g->tree.count;
	int r;

	node.kind = (uint8_t)find_kind(json_reader_peek(&g->reader));
	node.offset = (uint32_t)(g->reader.at - g->reader.start);
	node.up = index - parent;
	r = add_node(&g->tree, &node);
	if (r < 0)
		return r;
	if (node.kind == JSON_OBJECT)
		r = read_object(g, index);
	else if (node.kind == JSON_ARRAY)
		r = read_array(g, index);
	else
		r = read_scalar(g, &g->tree.nodes[index]);
	if (r < 0)
		return r;
	g->tree.nodes[index].extent =
		(uint32_t)(g->reader.at - g->reader.start) - g->tree.nodes[index].offset;
	return 0;
}

int json_tree_read(const char *text, size_t bytes, unsigned int nesting, struct json_tree *ret_tree,
		   struct json_fault *ret_fault)
{
	struct growing g = { .tree = { .text = text } };
	int r;

	if (bytes > JSON_TREE_BYTES)
		return -EFBIG;
	/*
	 * A decoded key or scalar with its NUL needs at most the bytes of its text and of the
	 * character after it.
	 */
	g.tree.strings = malloc(bytes + 1);
	if (!g.tree.strings)
		return -ENOMEM;
	json_reader_init(&g.reader, text, bytes, nesting);
	r = read_value(&g, (struct json_node){ 0 }, 0);
	if (r == 0 && !json_reader_end(&g.reader))
		r = -EBADMSG;
	if (r == 0) {
		*ret_tree = g.tree;
		return 0;
	}
	if (r == -EBADMSG)
		*ret_fault = (struct json_fault){
			.what = g.reader.fault,
			.offset = (size_t)(g.reader.at - g.reader.start),
			.too_deep = g.reader.too_deep,
		};
	json_tree_done(&g.tree);
	return r;
}

void json_tree_done(struct json_tree *tree)
{
	free(tree->nodes);
	free(tree->strings);
	*tree = (struct json_tree){ 0 };
}
