/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/unit_testing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define NESTING 16

/* A text that was read from a buffer of its exact size, so that ASan sees a read behind it. */
struct read_text {
	char *text;
	struct json_tree tree;
	struct json_fault fault;
	int r;
};

static struct read_text read_text(const char *text)
{
	struct read_text t = { .text = malloc(strlen(text) + 1) };
	size_t bytes = strlen(text);

	memcpy(t.text, text, bytes);
	t.text = realloc(t.text, bytes ? bytes : 1);
	t.r = json_tree_read(t.text, bytes, NESTING, &t.tree, &t.fault);
	return t;
}

static void read_text_done(struct read_text *t)
{
	json_tree_done(&t->tree);
	free(t->text);
}

#define _cleanup_text_ _cleanup_(read_text_done)

static void knows_the_places(void **state)
{
	_cleanup_text_ struct read_text t =
		read_text("{ \"a\": [10, \"x\"],\n \"b\" : {\"c\":true} }");
	const struct json_node *nodes = t.tree.nodes, *b;

	assert_int_equal(t.r, 0);
	assert_int_equal(t.tree.count, 6);
	assert_int_equal(nodes[0].children, 2);
	assert_int_equal(nodes[0].extent, strlen("{ \"a\": [10, \"x\"],\n \"b\" : {\"c\":true} }"));
	assert_ptr_equal(json_node_member(nodes, "a"), &nodes[1]);
	assert_int_equal(nodes[1].extent, 9);
	assert_int_equal(nodes[2].offset, 8);
	assert_int_equal(nodes[2].extent, 2);
	assert_int_equal(nodes[3].extent, 3);
	assert_int_equal(nodes[3].index, 1);
	assert_null(nodes[3].key);
	b = json_node_member(nodes, "b");
	assert_ptr_equal(b, &nodes[4]);
	assert_ptr_equal(json_node_first(b), &nodes[5]);
	assert_ptr_equal(json_node_parent(&nodes[5]), b);
	assert_null(json_node_member(b, "d"));
	assert_null(json_node_first(&nodes[5]));
}

static void check_key(const struct json_node *node, const char *key, size_t bytes)
{
	assert_int_equal(node->key_bytes, bytes);
	assert_memory_equal(node->key, key, bytes + 1);
}

static void decodes_keys(void **state)
{
	_cleanup_text_ struct read_text t = read_text(
		"{\"\\u0061\\n\\/\\\"\\\\\":1,\"\\u00e4\\u20ac\\ud83d\\ude00\":2,\"\\ud83dx\\ude00\":3}");

	assert_int_equal(t.r, 0);
	check_key(&t.tree.nodes[1], "a\n/\"\\", 5);
	check_key(&t.tree.nodes[2], "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9);
	check_key(&t.tree.nodes[3], "\xef\xbf\xbdx\xef\xbf\xbd", 7);
}

static uint32_t count_repeats(const struct json_tree *tree)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < tree->count; i++)
		n += tree->nodes[i].repeats;
	return n;
}

static void finds_repeated_keys(void **state)
{
	_cleanup_text_ struct read_text few =
		read_text("{\"a\":1,\"b\":{\"c\":1,\"\\u0063\":2},\"a\":3,\"a\":4}");
	_cleanup_text_ struct read_text many = { 0 };
	char text[2048] = "{";

	assert_int_equal(few.r, 0);
	assert_int_equal(count_repeats(&few.tree), 3);
	assert_true(few.tree.nodes[1].hidden && few.tree.nodes[5].hidden);
	assert_false(few.tree.nodes[6].hidden);

	for (int i = 0; i < 60; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "\"%d\":1,", i % 50);
	strcat(text, "\"x\":1}");
	many = read_text(text);
	assert_int_equal(many.r, 0);
	assert_int_equal(count_repeats(&many.tree), 10);
	assert_true(many.tree.nodes[1].hidden && !many.tree.nodes[11].hidden);
	assert_int_equal(json_node_u64(json_node_get(many.tree.nodes, "x")), 1);
}

static void refuses_malformed_text(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"{",
		"}",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"[1,]",
		"[",
		"[1 2]",
		"01",
		"-",
		"1.",
		"1e",
		"+1",
		".5",
		"NaN",
		"Infinity",
		"tru",
		"nul",
		"{a:1}",
		"'a'",
		"\"",
		"\"\\",
		"\"\\x\"",
		"\"\\u12",
		"\"\\u12g4\"",
		"\"\n\"",
		"1 1",
		"{} {}",
		"\"\xff\"",
		"\"\xc0\xaf\"",
		"\"\xed\xa0\x80\"",
		"/**/1",
		"{1:1}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_text_ struct read_text t = read_text(texts[i]);

		if (t.r != -EBADMSG)
			fail_msg("took %s", texts[i]);
		assert_non_null(t.fault.what);
		assert_true(t.fault.offset <= strlen(texts[i]));
		assert_false(t.fault.too_deep);
		assert_null(t.tree.nodes);
	}
}

static void accepts_json(void **state)
{
	static const char *const texts[] = {
		"0",  "-0", "1.5e+10", "-1E-3",	      "\"\"",	 "true",	   " null\t\r\n",
		"[]", "{}", "[[],{}]", "\"\\ud800\"", "[1,2,3]", "[0,\"\",0,\"\"]"
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_text_ struct read_text t = read_text(texts[i]);

		if (t.r != 0)
			fail_msg("refused %s", texts[i]);
		assert_true(t.tree.strings_bytes <= strlen(texts[i]) + 1);
	}
}

static void says_where_the_fault_is(void **state)
{
	_cleanup_text_ struct read_text early = read_text("{\"a\":[1,"), late = read_text("[1] x");
	_cleanup_text_ struct read_text value = read_text("{\"a\":\n x}");

	assert_int_equal(early.fault.offset, 8);
	assert_int_equal(late.fault.offset, 4);
	assert_int_equal(value.fault.offset, 7);
	assert_string_equal(value.fault.what, "want a JSON value");
}

static void nests_to_the_wall(void **state)
{
	_cleanup_text_ struct read_text good = read_text("[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]");
	_cleanup_text_ struct read_text bad = read_text("[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]");
	_cleanup_text_ struct read_text other = read_text("[[[[[[[[[[[[[[[[1[]]]]]]]]]]]]]]]]]");

	assert_int_equal(good.r, 0);
	assert_int_equal(bad.r, -EBADMSG);
	assert_true(bad.fault.too_deep);
	assert_int_equal(bad.fault.offset, 16);
	assert_int_equal(other.r, -EBADMSG);
	assert_false(other.fault.too_deep);
}

static void refuses_long_text(void **state)
{
	struct json_fault fault;
	struct json_tree tree;

	assert_int_equal(json_tree_read("1", JSON_TREE_BYTES + 1, NESTING, &tree, &fault), -EFBIG);
}

UNIT_TESTS(json_tree)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_the_places),    cmocka_unit_test(decodes_keys),
		cmocka_unit_test(finds_repeated_keys), cmocka_unit_test(refuses_malformed_text),
		cmocka_unit_test(accepts_json),	       cmocka_unit_test(says_where_the_fault_is),
		cmocka_unit_test(nests_to_the_wall),   cmocka_unit_test(refuses_long_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
