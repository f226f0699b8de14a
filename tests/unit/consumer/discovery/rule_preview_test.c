/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/rule_preview.h"

#include "shared/json/jsonw.h"
#include "tests/unit/consumer/testing/group_testing.h"

#include <stdio.h>

#include "consumer/discovery/rules_apply.h"
#include "shared/tools/cleanup.h"

#define LISTED 3000u
#define NODE   "{\"version\":1,\"rules\":[{\"name\":\"new\",\"match\":{\"comm\":\"node\"}}]}"
#define OTHER  "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"other\"}}]}"

static int setup(void **state)
{
	group_begin("preview");
	if (fake)
		fake_rules(fake, OTHER);
	return 0;
}

static struct rule_preview *begin(const char *text, size_t max)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	struct rule_preview *v = NULL;
	struct rules *rules;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	assert_int_equal(rules_parse(text, strlen(text), &rules, &faults, &warnings), 0);
	assert_int_equal(rule_preview_new(&fake->a.discovery, rules, max, &v), 0);
	return v;
}

/* The matches, and the left-out ones. */
static json_object *matches_of(const struct rule_preview *v, struct rule_preview_left *ret_left)
{
	struct json_tokener *tokener = json_tokener_new();
	json_object *value, *matches;
	struct jsonw w;

	jsonw_init(&w, 1u << 20);
	jsonw_object(&w, NULL);
	rule_preview_write(v, &w, ret_left);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	value = json_tokener_parse_ex(tokener, w.data, (int)w.bytes);
	json_tokener_free(tokener);
	matches = json_object_get(json_object_object_get(value, "matches"));
	json_object_put(value);
	jsonw_done(&w);
	return matches;
}

static void list_nodes(void)
{
	struct task_record *tasks = calloc(LISTED, sizeof(*tasks));

	assert_non_null(tasks);
	for (uint32_t i = 0; i < LISTED; i++)
		tasks[i] = (struct task_record){ .tgid = 100 + i,
						 .cgroup_id = 1ULL << 40,
						 .comm = "node" };
	cgroups_learn(&fake->a.cgroups, 1ULL << 40, "/unit");
	fake_tasks(fake, tasks, LISTED);
	free(tasks);
}

/* It ends with its time and goes on; what it has no room for is counted; the tries are empty then.
 */
static void test_in_parts(void **state)
{
	_cleanup_json_ json_object *matches = NULL;
	struct rule_preview_left left;
	struct rule_preview *v;
	unsigned int parts = 0;
	struct comm_key key;

	if (!fake)
		skip();
	list_nodes();
	v = begin(NODE, 10);
	while (rule_preview_step(v, 0) > 0)
		parts++;
	assert_true(parts >= LISTED - 1);
	matches = matches_of(v, &left);
	assert_int_equal(json_object_array_length(matches), 10);
	assert_int_equal(left.omitted, LISTED - 10);
	assert_string_equal(fake_text(json_object_array_get_idx(matches, 9), "cgroup"), "/unit");
	rule_preview_free(v);
	assert_null(fake->a.discovery.preview);
	assert_true(bpf_map_get_next_key(fake->a.pins.rules_fd[!fake->control.active], NULL, &key) <
		    0);
}

/* One has the tries; the next waits for its end, also when it is given up. */
static void test_two(void **state)
{
	struct rule_preview *first, *second;

	if (!fake)
		skip();
	list_nodes();
	first = begin(NODE, 10);
	second = begin(NODE, 10);
	assert_int_equal(rule_preview_step(first, 0), 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(rule_preview_step(second, UINT64_MAX), 1);
	rule_preview_free(first);
	assert_int_equal(rule_preview_step(second, UINT64_MAX), 0);
	rule_preview_free(second);
}

/* Rules that are applied meanwhile take the tries: it begins anew, and leaves theirs alone. */
static void test_applied_meanwhile(void **state)
{
	_cleanup_json_ json_object *matches = NULL;
	struct rule_preview_left left;
	struct rule_preview *v;
	struct comm_key key;
	int in_force;

	if (!fake)
		skip();
	list_nodes();
	v = begin(NODE, LISTED);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rule_preview_step(v, 0), 1);
	fake_rules(fake, OTHER);
	assert_int_equal(rule_preview_step(v, UINT64_MAX), 0);
	matches = matches_of(v, &left);
	assert_int_equal(json_object_array_length(matches), LISTED);
	rule_preview_free(v);
	v = begin(NODE, LISTED);
	assert_int_equal(rule_preview_step(v, 0), 1);
	fake_rules(fake, OTHER);
	rule_preview_free(v);
	in_force = fake->a.pins.rules_fd[fake->control.active];
	assert_int_equal(bpf_map_get_next_key(in_force, NULL, &key), 0);
}

/* Processes that a rule by cgroup selects, and that no rule by name matches. */
static void test_by_cgroup(void **state)
{
	_cleanup_json_ json_object *matches = NULL;
	struct rule_preview_left left;
	struct rule_preview *v;
	char rules[256];

	if (!fake)
		skip();
	fake_tasks(fake, NULL, 0);
	snprintf(
		rules, sizeof(rules),
		"{\"version\":1,\"rules\":[{\"name\":\"all\",\"match\":{\"cgroup_prefix\":\"%s\"}}]}",
		group.path);
	v = begin(rules, 10);
	while (rule_preview_step(v, 0) > 0)
		continue;
	matches = matches_of(v, &left);
	assert_int_equal(json_object_array_length(matches), 1);
	assert_int_equal(json_object_get_int64(json_object_object_get(
				 json_object_array_get_idx(matches, 0), "pid")),
			 group.pid);
	assert_string_equal(fake_text(json_object_array_get_idx(matches, 0), "cgroup"), group.path);
	assert_int_equal(left.unreadable, 0);
	rule_preview_free(v);
}

UNIT_TESTS(rule_preview)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two, setup, teardown),
		cmocka_unit_test_setup_teardown(test_applied_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_cgroup, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
