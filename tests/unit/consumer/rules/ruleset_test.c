/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/rules/ruleset.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static struct rules *parse(const char *text)
{
	_cleanup_(rules_faults_done) struct rules_faults faults, warnings;
	struct rules *rules;

	rules_faults_init(&faults);
	rules_faults_init(&warnings);
	if (rules_parse(text, strlen(text), &rules, &faults, &warnings) < 0)
		fail_msg("%s: %s", faults.items[0].pointer, faults.items[0].message);
	return rules;
}

static void test_references(void **state)
{
	struct ruleset *set;

	assert_int_equal(ruleset_new(parse("{\"version\":1,\"rules\":[]}"), 5, "file:x", &set), 0);
	assert_int_equal(set->generation, 5);
	assert_string_equal(set->source, "file:x");
	assert_ptr_equal(ruleset_ref(set), set);
	ruleset_unref(set);
	assert_int_equal(set->rules->count, 0);
	ruleset_unref(set);
	ruleset_unref(NULL);
	assert_null(ruleset_ref(NULL));
}

/* A rule keeps its id as long as it is unchanged; no id comes back. */
static void test_ids(void **state)
{
	static const char both[] = "{\"version\":1,\"rules\":["
				   "{\"name\":\"a\",\"match\":{\"comm\":\"a\"}},"
				   "{\"name\":\"b\",\"match\":{\"comm\":\"b\"}}]}";
	static const char changed[] = "{\"version\":1,\"rules\":["
				      "{\"name\":\"b\",\"match\":{\"comm\":\"b\"}},"
				      "{\"name\":\"a\",\"match\":{\"comm\":\"other\"}}]}";
	struct ruleset *first, *second, *third;
	uint32_t last = 0;

	assert_int_equal(ruleset_new(parse(both), 1, "x", &first), 0);
	ruleset_number(first, NULL, &last);
	assert_int_equal(ruleset_id(first, &first->rules->rules[0]), 1);
	assert_int_equal(ruleset_id(first, &first->rules->rules[1]), 2);
	assert_int_equal(ruleset_id(first, NULL), RULE_ID_NONE);
	assert_int_equal(ruleset_new(parse(changed), 2, "x", &second), 0);
	ruleset_number(second, first, &last);
	assert_int_equal(ruleset_id(second, &second->rules->rules[0]), 2);
	assert_int_equal(ruleset_id(second, &second->rules->rules[1]), 3);
	assert_int_equal(ruleset_new(parse(both), 3, "x", &third), 0);
	ruleset_number(third, second, &last);
	assert_int_equal(ruleset_id(third, &third->rules->rules[0]), 4);
	assert_int_equal(ruleset_id(third, &third->rules->rules[1]), 2);
	ruleset_unref(first);
	ruleset_unref(second);
	ruleset_unref(third);
}

static const char text[] =
	"{\"version\":1,\"rules\":["
	"{\"name\":\"node\",\"match\":{\"comm\":\"node\"}},"
	"{\"name\":\"workers\",\"match\":{\"comm_prefix\":\"worker-\"}},"
	"{\"name\":\"long\",\"match\":{\"comm\":\"exactly15bytes_\"}},"
	"{\"name\":\"longp\",\"match\":{\"comm_prefix\":\"fifteen_bytes_x\"}},"
	"{\"name\":\"nginx\",\"match\":{\"cgroup_prefix\":\"/system.slice/nginx\"}},"
	"{\"name\":\"both\",\"match\":{\"comm\":\"java\",\"cgroup_prefix\":\"/app\"}}]}";

static int trie(size_t key_bytes, uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);

	return bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "unit", (uint32_t)key_bytes,
			      sizeof(struct rule_value), entries, &options);
}

/* False when this process may make no maps. */
static bool open_tries(struct pinned_maps *pins, uint32_t entries)
{
	*pins = (struct pinned_maps){};
	for (int i = 0; i < 2; i++) {
		pins->rules_fd[i] = trie(sizeof(struct comm_key), entries);
		pins->cgroups_fd[i] = trie(sizeof(struct cgroup_key), entries);
	}
	return pins->rules_fd[0] >= 0;
}

static void close_tries(struct pinned_maps *pins)
{
	for (int i = 0; i < 2; i++) {
		close(pins->rules_fd[i]);
		close(pins->cgroups_fd[i]);
	}
}

/* As the programs look a name up: all 16 bytes of it. The rule, or -1. */
static int match_comm(const struct pinned_maps *pins, unsigned int pair, const char *comm)
{
	struct comm_key key = { .prefix_bits = 8 * COMM_BYTES };
	struct rule_value value;

	memcpy(key.comm, comm, strnlen(comm, sizeof(key.comm)));
	if (bpf_map_lookup_elem(pins->rules_fd[pair], &key, &value) < 0)
		return -1;
	return (int)value.rule;
}

static int match_cgroup(const struct pinned_maps *pins, unsigned int pair, const char *path)
{
	struct cgroup_key key = { .prefix_bits = 8 * CGROUP_PREFIX_BYTES };
	struct rule_value value;

	memcpy(key.path, path, strnlen(path, sizeof(key.path) - 1));
	if (bpf_map_lookup_elem(pins->cgroups_fd[pair], &key, &value) < 0)
		return -1;
	return (int)value.rule;
}

static void test_keys(void **state)
{
	static const struct {
		const char *comm;
		int rule;
	} rows[] = {
		{ "node", 0 },
		{ "nodejs", -1 },
		{ "nod", -1 },
		{ "Node", -1 },
		{ "worker-", 1 },
		{ "worker-7", 1 },
		{ "worker", -1 },
		{ "worker-12345678", 1 },
		{ "exactly15bytes_", 2 },
		{ "exactly15bytes", -1 },
		{ "fifteen_bytes_x", 3 },
		{ "fifteen_bytes_", -1 },
		{ "java", 5 },
		{ "javac", -1 },
		{ "", -1 },
	};
	struct ruleset *set;
	struct pinned_maps pins;

	if (!open_tries(&pins, 64))
		skip();
	assert_int_equal(ruleset_new(parse(text), 9, "test", &set), 0);
	assert_int_equal(ruleset_fill(&pins, 1, set), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (match_comm(&pins, 1, rows[i].comm) != rows[i].rule)
			fail_msg("%s", rows[i].comm);
		/* The other pair is not touched. */
		assert_int_equal(match_comm(&pins, 0, rows[i].comm), -1);
	}
	assert_int_equal(match_cgroup(&pins, 1, "/system.slice/nginx.service"), 4);
	assert_int_equal(match_cgroup(&pins, 1, "/system.slice/ngin"), -1);
	/* A rule with a name too is found by its name alone. */
	assert_int_equal(match_cgroup(&pins, 1, "/app"), -1);
	assert_int_equal(ruleset_clear(&pins, 1), 0);
	assert_int_equal(match_comm(&pins, 1, "node"), -1);
	assert_int_equal(ruleset_clear(&pins, 1), 0);
	ruleset_unref(set);
	close_tries(&pins);
}

/* What stood in a pair is gone when it is filled again. */
static void test_refill(void **state)
{
	struct ruleset *first, *second;
	struct pinned_maps pins;

	if (!open_tries(&pins, 64))
		skip();
	assert_int_equal(ruleset_new(parse(text), 1, "test", &first), 0);
	assert_int_equal(ruleset_new(parse("{\"version\":1,\"rules\":[{\"name\":\"x\",\"match\":{"
					   "\"comm\":\"redis\"}}]}"),
				     2, "test", &second),
			 0);
	assert_int_equal(ruleset_fill(&pins, 0, first), 0);
	assert_int_equal(ruleset_fill(&pins, 0, second), 0);
	assert_int_equal(match_comm(&pins, 0, "redis"), 0);
	assert_int_equal(match_comm(&pins, 0, "node"), -1);
	assert_int_equal(match_cgroup(&pins, 0, "/system.slice/nginx"), -1);
	ruleset_unref(first);
	ruleset_unref(second);
	close_tries(&pins);
}

static void test_no_room(void **state)
{
	struct ruleset *set;
	struct pinned_maps pins;

	if (!open_tries(&pins, 2))
		skip();
	assert_int_equal(ruleset_new(parse(text), 1, "test", &set), 0);
	assert_int_equal(ruleset_fill(&pins, 0, set), -ENOSPC);
	ruleset_unref(set);
	close_tries(&pins);
}

/* The largest set there may be. */
static void test_full(void **state)
{
	_cleanup_free_ char *many = malloc(RULES_TEXT_BYTES);
	struct ruleset *set;
	struct pinned_maps pins;
	size_t at;

	if (!open_tries(&pins, RULES_MAX))
		skip();
	assert_non_null(many);
	at = (size_t)sprintf(many, "{\"version\":1,\"rules\":[");
	for (unsigned int i = 0; i < RULES_MAX; i++)
		at += (size_t)sprintf(many + at,
				      "%s{\"name\":\"r%u\",\"match\":{\"comm\":\"c%u\"}}",
				      i ? "," : "", i, i);
	strcpy(many + at, "]}");
	assert_int_equal(ruleset_new(parse(many), 1, "test", &set), 0);
	assert_int_equal(ruleset_fill(&pins, 0, set), 0);
	assert_int_equal(match_comm(&pins, 0, "c0"), 0);
	assert_int_equal(match_comm(&pins, 0, "c9999"), 9999);
	assert_int_equal(match_comm(&pins, 0, "c99999"), -1);
	ruleset_unref(set);
	close_tries(&pins);
}

UNIT_TESTS(ruleset)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references), cmocka_unit_test(test_keys),
		cmocka_unit_test(test_refill),	   cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_full),	   cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
