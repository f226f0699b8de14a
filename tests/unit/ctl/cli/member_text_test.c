/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "shared/json/json_reader.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"

static struct json_tree tree;

static int read_tree(void **state)
{
	static const char text[] =
		"{\"comm\":\"a\\u001b\",\"waits\":12,\"one\":1,\"zero\":0,\"none\":null,\"bytes\":4096,"
		"\"age_ms\":4200,\"wait_ns\":4200000,\"share\":0.612,\"idle\":true,\"what\":\"lock\","
		"\"offset\":40,\"path\":\"/usr/lib/libc.so.6\",\"v4\":\"10.0.0.5\",\"v6\":\"::1\","
		"\"part\":{\"p50\":4200000,\"p99\":null,\"deep\":{\"n\":7}},\"list\":[\"x\",\"y\"]}";
	struct json_fault fault;

	return json_tree_read(text, strlen(text), JSON_READER_NESTING, &tree, &fault);
}

static int free_tree(void **state)
{
	json_tree_done(&tree);
	return 0;
}

static void reads_of(const struct json_node *object, const char *form, const char *wanted)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	member_text_put(form, object, out);
	fclose(out);
	assert_string_equal(text, wanted);
}

static void reads(const char *form, const char *wanted)
{
	reads_of(tree.nodes, form, wanted);
}

static void test_find(void **state)
{
	const struct json_node *part = json_node_get(tree.nodes, "part");

	assert_int_equal(member_text_number(tree.nodes, "part.deep.n"), 7);
	assert_ptr_equal(member_text_find(tree.nodes, "part.deep"), json_node_get(part, "deep"));
	/* It leads nowhere, to a value that is no object, or to null. */
	assert_null(member_text_find(tree.nodes, "part.x.n"));
	assert_null(member_text_find(tree.nodes, "comm.x"));
	assert_null(member_text_find(tree.nodes, "none"));
	assert_null(member_text_find(NULL, "part"));
	/* Another value than an integer counts as none. */
	assert_int_equal(member_text_number(tree.nodes, "comm"), 0);
	assert_int_equal(member_text_number(tree.nodes, "share"), 0);
	assert_int_equal(member_text_number(tree.nodes, "x.y"), 0);
}

static void test_places(void **state)
{
	reads("", "");
	reads("{comm} of {waits}, {list}", "a\\x1b of 12, x, y");
	/* In the unit of the key; a dash for a missing member. */
	reads("{age_ms} {bytes} {wait_ns} {idle}", "4.2 s 4.0 KiB 4200000 yes");
	reads("{none} {nothing} {part.nothing}", "- - -");
	reads("{part.deep.n}", "7");
	reads_of(NULL, "{comm} {waits:n}", "- 0");
}

static void test_units(void **state)
{
	reads("{waits:n} {nothing:n}", "12 0");
	reads("wait{waits:s} wait{one:s}", "waits wait");
	reads("{wait_ns:ns} {waits:ms} {nothing:ns}", "4 ms 12 ms 0 s");
	reads("{part.p50:bound} {part.p99:bound}", "4 ms longer");
	reads("{bytes:bytes} {zero:bytes} {bytes:size} {zero:size}", "4.0 KiB 0 B 4.0 KiB 0");
	reads("x{offset:offset} y{zero:offset}", "x+0x28 y");
	reads("{share:share} {share:tenths} {waits:percent}", "61 % 61.2 % 12 %");
	reads("{path:base} {comm:base} {v4:host} {v6:host}", "libc.so.6 a\\x1b 10.0.0.5 [::1]");
}

static void test_alternatives(void **state)
{
	reads("{nothing|none|comm}", "a\\x1b");
	reads("{waits+one+nothing:n}", "13");
	/* A dash is for a missing member; null is a bound that is not known. */
	reads("{nothing|-:n} {waits|-:n}", "- 12");
	reads("{part.p90|-:bound} {part.p99|-:bound}", "- longer");
}

static void test_parts(void **state)
{
	reads("a[comm? ({comm})]b", "a (a\\x1b)b");
	reads("a[nothing? ({comm})]b[none?c]", "ab");
	reads("[!nothing?no][!comm?yes]", "no");
	reads("[what=lock?L][what=file?F][!what=file?f]", "Lf");
	reads("[idle=true?I][zero=0?Z][!waits=0?W]", "IZW");
	/* Parts in parts, of which the outer one decides. */
	reads("[comm?a[nothing?b[comm?c]]d[comm?e]]f", "adef");
	reads("[nothing?a[comm?b]c]d", "d");
	assert_true(member_text_holds("!way=listens", tree.nodes));
	assert_false(member_text_holds("what", NULL));
}

UNIT_TESTS(member_text)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, read_tree, free_tree)
	const struct CMUnitTest tests[] = {
		TEST(find), TEST(places), TEST(units), TEST(alternatives), TEST(parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
