/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/render/neighbour_text.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"

static void reads(const char *json, const char *wanted)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	_cleanup_free_ char *text = NULL;
	struct json_fault fault;

	assert_int_equal(json_tree_read(json, strlen(json), 2, &tree, &fault), 0);
	text = neighbour_text(tree.nodes);
	assert_string_equal(text, wanted);
}

static void test_names(void **state)
{
	reads("{\"neighbour\":\"/batch.slice\"}", "/batch.slice");
	reads("{\"neighbour\":\"/u/\\u001b\",\"neighbour_uid\":1000}", "/u/\\x1b (uid 1000)");
	reads("{\"neighbour\":\"/u\",\"neighbour_uid\":1000,\"neighbour_cgroups\":600}",
	      "/u (uid 1000, 600 cgroups)");
	reads("{\"neighbour\":null,\"name\":\"nginx.service\",\"name_unverified\":true}",
	      "(no path, unverified name) nginx.service");
	/* Lines of an agent from before name_unverified; lines of other signals. */
	reads("{\"neighbour\":null,\"name\":\"job\"}", "(no path) job");
	reads("{\"neighbour\":null,\"neighbour_id\":8}", "(a cgroup without path)");
}

UNIT_TESTS(neighbour_text)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
