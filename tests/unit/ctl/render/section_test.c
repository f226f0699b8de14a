/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/member_text.h"
#include "ctl/cli/terminal.h"
#include "ctl/cli/text_width.h"
#include "ctl/render/section.h"
#include "ctl/render/sections.h"
#include "shared/tools/cleanup.h"

static int forget(void **state)
{
	terminal_use(&(struct terminal){ 0 });
	return 0;
}

static void draws(double share, const char *expected)
{
	_cleanup_free_ char *bar = section_bar(share, 4);

	assert_string_equal(bar, expected);
}

static void test_bar(void **state)
{
	draws(1, ""); /* it is not used */
	terminal_use(&(struct terminal){ .is_one = true });
	draws(0, "");
	draws(0.0001, "#");
	draws(0.5, "##");
	draws(1, "####");
	draws(7, "####");
	terminal_use(&(struct terminal){ .is_one = true, .utf8 = true });
	draws(0, "");
	draws(0.0001, "\xe2\x96\x8f");		    /* an eighth */
	draws(0.28125, "\xe2\x96\x88\xe2\x96\x8f"); /* nine */
	draws(0.4375, "\xe2\x96\x88\xe2\x96\x8a");  /* fourteen */
	draws(1, "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88");
}

static void test_head(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	section_head(out, "locks", "%d of them", 3);
	section_head(out, "nothing", "%s", "");
	terminal_use(&(struct terminal){ .colours = true });
	section_head(out, "disks", "%s", "two");
	fclose(out);
	assert_string_equal(text, "\nlocks: 3 of them\n\nnothing: \n\n\x1b[1mdisks\x1b[m: two\n");
}

static void names(const char *json, const char *wanted)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	_cleanup_free_ char *text = NULL;
	struct json_fault fault;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(json_tree_read(json, strlen(json), 2, &tree, &fault), 0);
	member_text_put(SECTIONS_NEIGHBOUR, tree.nodes, out);
	fclose(out);
	assert_string_equal(text, wanted);
}

static void test_neighbour(void **state)
{
	names("{\"neighbour\":\"/batch.slice\"}", "/batch.slice");
	names("{\"neighbour\":\"/u/\\u001b\",\"neighbour_uid\":1000}", "/u/\\x1b (uid 1000)");
	names("{\"neighbour\":\"/u\",\"neighbour_uid\":1000,\"neighbour_cgroups\":600}",
	      "/u (uid 1000, 600 cgroups)");
	names("{\"neighbour\":\"/batch.slice\",\"neighbour_cgroups\":600}",
	      "/batch.slice (600 cgroups)");
	names("{\"neighbour\":null,\"name\":\"nginx.service\",\"name_unverified\":true}",
	      "(no path, unverified name) nginx.service");
	/* Lines of an agent from before name_unverified; lines of other signals. */
	names("{\"neighbour\":null,\"name\":\"job\"}", "(no path) job");
	names("{\"neighbour\":null,\"neighbour_id\":8}", "(a cgroup without path)");
}

UNIT_TESTS(section)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, forget, forget)
	const struct CMUnitTest tests[] = {
		TEST(bar),
		TEST(head),
		TEST(neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
