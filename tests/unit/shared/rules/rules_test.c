/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/json/jsonw.h"
#include "tests/unit/shared/rules/rules_testing.h"

static void matches_as(const struct parsed *p, const char *comm, const char *path, const char *name)
{
	const struct rule *r = rules_match(p->rules, comm, path);

	if (!name)
		assert_null(r);
	else
		assert_string_equal(r ? r->name : "none", name);
}

static void exact_is_not_prefix(void **state)
{
	_cleanup_parsed_ struct parsed p =
		parse_rules("{\"name\":\"node\",\"match\":{\"comm\":\"node\"}},"
			    "{\"name\":\"w\",\"match\":{\"comm_prefix\":\"worker-\"}},"
			    "{\"name\":\"full\",\"match\":{\"comm\":\"fifteen-bytes-x\"}},"
			    "{\"name\":\"fullp\",\"match\":{\"comm_prefix\":\"fifteen-bytes-y\"}}");

	assert_good(&p);
	matches_as(&p, "node", NULL, "node");
	matches_as(&p, "nodejs", NULL, NULL);
	matches_as(&p, "nod", NULL, NULL);
	matches_as(&p, "", NULL, NULL);
	matches_as(&p, "worker-", NULL, "w");
	matches_as(&p, "worker-12345678", NULL, "w");
	matches_as(&p, "worker", NULL, NULL);
	matches_as(&p, "fifteen-bytes-x", NULL, "full");
	matches_as(&p, "fifteen-bytes-y", NULL, "fullp");
	matches_as(&p, "fifteen-bytes-", NULL, NULL);
}

static void the_most_special_wins(void **state)
{
	_cleanup_parsed_ struct parsed p = parse_rules(
		"{\"name\":\"root\",\"match\":{\"cgroup_prefix\":\"/\"}},"
		"{\"name\":\"p2\",\"match\":{\"comm_prefix\":\"no\"}},"
		"{\"name\":\"p3a\",\"match\":{\"comm_prefix\":\"nod\",\"cgroup_prefix\":\"/a\"}},"
		"{\"name\":\"x\",\"match\":{\"comm\":\"node\",\"cgroup_prefix\":\"/a/b\"}},"
		"{\"name\":\"xl\",\"match\":{\"comm\":\"node\",\"cgroup_prefix\":\"/a/b/c\"}},"
		"{\"name\":\"any\",\"match\":{\"comm\":\"redis\"}},"
		"{\"name\":\"anya\",\"match\":{\"comm\":\"redis\",\"cgroup_prefix\":\"/a\"}},"
		"{\"name\":\"s\",\"match\":{\"cgroup_prefix\":\"/system.slice/nginx\"}}");

	assert_good(&p);
	matches_as(&p, "node", "/a/b/c/d", "xl");
	matches_as(&p, "node", "/a/b/x", "x");
	matches_as(&p, "node", "/a/x", "p3a"); /* exact, but its cgroup does not hold */
	matches_as(&p, "node", "/b", "p2");
	matches_as(&p, "node", NULL, "p2");
	matches_as(&p, "nox", "/a/b", "p2");
	matches_as(&p, "redis", "/a", "anya");
	matches_as(&p, "redis", "/", "any");
	matches_as(&p, "redis", NULL, "any");
	matches_as(&p, "other", "/system.slice/nginx.service", "s");
	matches_as(&p, "other", "/system.slice", "root");
	matches_as(&p, "other", NULL, NULL);
	assert_string_equal(rules_match_cgroup(p.rules, "/system.slice/nginx.service")->name, "s");
	assert_string_equal(rules_match_cgroup(p.rules, "/a/b")->name, "root");
	assert_null(rules_match_cgroup(p.rules, ""));
}

/* Rules drawn at random from few letters, so that much is alike, against a plain search through all
 * of them. */
static const struct rule *plain_match(const struct rules *rules, const char *comm, const char *path)
{
	const struct rule *best = NULL;
	long best_rank = -1;

	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *r = &rules->rules[i];
		size_t prefix = r->cgroup_prefix ? strlen(r->cgroup_prefix) : 0;
		long rank;

		if (r->cgroup_prefix && (!path || strncmp(path, r->cgroup_prefix, prefix) != 0))
			continue;
		if (r->comm_exact && !rule_has_comm(r, comm, true))
			continue;
		if (r->n_comms && !r->comm_exact &&
		    strncmp(comm, r->comms[0], strlen(r->comms[0])) != 0)
			continue;
		rank = (long)((r->comm_exact ? 100
			       : r->n_comms  ? strlen(r->comms[0])
					     : 0) *
				      1000 +
			      prefix);
		if (rank > best_rank) {
			best = r;
			best_rank = rank;
		}
	}
	return best;
}

static void draw(char *text, size_t max, const char *letters)
{
	size_t n = 1 + (size_t)random() % max;

	for (size_t i = 0; i < n; i++)
		text[i] = letters[(size_t)random() % strlen(letters)];
	text[n] = '\0';
}

static void append(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(char **text, const char *format, ...)
{
	char *more = NULL, *both = NULL;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&more, format, args) >= 0);
	va_end(args);
	assert_true(asprintf(&both, "%s%s", *text ? *text : "", more) >= 0);
	free(more);
	free(*text);
	*text = both;
}

static void agrees_with_a_plain_search(void **state)
{
	_cleanup_free_ char *text = NULL;
	char comm[16], path[32];
	int tested = 0;

	srandom(7);
	for (int round = 0; round < 400; round++) {
		_cleanup_parsed_ struct parsed p = { 0 };

		free(TAKE_PTR(text));
		for (int i = 0; i < 12; i++) {
			draw(comm, 4, "ab");
			path[0] = '/';
			draw(path + 1, 4, "a/");
			append(&text, "%s{\"name\":\"r%d\",\"match\":{", i ? "," : "", i);
			if (random() % 3)
				append(&text, "\"comm%s\":\"%s\"", random() % 2 ? "" : "_prefix",
				       comm);
			else
				append(&text, "\"cgroup_prefix\":\"%s\"}}", path);
			if (text[strlen(text) - 1] != '}')
				append(&text, random() % 2 ? "}}" : ",\"cgroup_prefix\":\"%s\"}}",
				       path);
		}
		p = parse_rules(text);
		if (p.r < 0)
			continue; /* the same match twice */
		tested++;
		for (int i = 0; i < 200; i++) {
			const char *where = random() % 8 ? path : NULL;

			draw(comm, 6, "ab");
			path[0] = '/';
			draw(path + 1, 6, "a/");
			assert_ptr_equal(rules_match(p.rules, comm, where),
					 plain_match(p.rules, comm, where));
		}
	}
	assert_true(tested > 50);
}

/* For a name that has matched one rule's comm the cgroup distinguishes the other rules. */
static void matches_a_name_by_its_rule(void **state)
{
	_cleanup_parsed_ struct parsed p = parse_rules(
		"{\"name\":\"short\",\"match\":{\"comm_prefix\":\"no\"}},"
		"{\"name\":\"prefix\",\"match\":{\"comm_prefix\":\"node\",\"cgroup_prefix\":\"/a\"}},"
		"{\"name\":\"exact\",\"match\":{\"comm\":\"node\",\"cgroup_prefix\":\"/a/b\"}},"
		"{\"name\":\"place\",\"match\":{\"cgroup_prefix\":\"/c\"}}");
	const struct rule *exact, *prefix, *place;
	const struct rules_entry *of; /* one of each: no rule has a list of names */

	assert_good(&p);
	exact = rules_find(p.rules, "exact");
	prefix = rules_find(p.rules, "prefix");
	place = rules_find(p.rules, "place");
	of = p.rules->entries;
	assert_ptr_equal(rules_match_named(p.rules, &of[2], "/a/b"), exact);
	assert_ptr_equal(rules_match_named(p.rules, &of[2], "/a"), prefix);
	/* Its name is longer than the prefix: the exact rule is not its. */
	assert_ptr_equal(rules_match_named(p.rules, &of[1], "/a/b"), prefix);
	assert_string_equal(rules_match_named(p.rules, &of[1], "/x")->name, "short");
	assert_string_equal(rules_match_named(p.rules, &of[1], NULL)->name, "short");
	assert_ptr_equal(rules_match_named(p.rules, &of[3], "/c"), place);
	assert_null(rules_match_named(p.rules, &of[3], "/x"));
}

static void finds_by_name(void **state)
{
	_cleanup_parsed_ struct parsed p =
		parse_rules("{\"name\":\"b\",\"match\":{\"comm\":\"1\"}},"
			    "{\"name\":\"a\",\"match\":{\"comm\":\"2\"}},"
			    "{\"name\":\"ab\",\"match\":{\"comm\":\"3\"}}");

	assert_good(&p);
	assert_ptr_equal(rules_find(p.rules, "a"), &p.rules->rules[1]);
	assert_ptr_equal(rules_find(p.rules, "ab"), &p.rules->rules[2]);
	assert_ptr_equal(rules_find(p.rules, "b"), &p.rules->rules[0]);
	assert_null(rules_find(p.rules, ""));
	assert_null(rules_find(p.rules, "c"));
}

static void empty_sets_answer(void **state)
{
	_cleanup_parsed_ struct parsed p = parse_rules("");

	assert_good(&p);
	assert_int_equal(p.rules->count, 0);
	matches_as(&p, "x", "/", NULL);
	assert_null(rules_match_cgroup(p.rules, "/"));
	assert_null(rules_find(p.rules, "x"));
	rules_free(NULL);
}

static void writes_all_defaults(void **state)
{
	static const char right[] =
		"{\"version\":1,\"budget_s\":600,\"rules\":[{\"name\":\"a\",\"match\":{\"comm\":\"x\"},"
		"\"when\":[{\"pressure\":\"io\",\"some_pct\":0.100,\"window_ms\":2000}],"
		"\"capture\":{\"pre_ms\":10000,\"during_ms\":3000,\"cooldown_ms\":30000,"
		"\"scope\":\"cgroup\",\"signals\":[\"auto\"],\"unwind\":\"auto\",\"budget_s\":600},\"labels\":{}}]}";
	_cleanup_parsed_ struct parsed p =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"x\"},"
			    "\"when\":[{\"pressure\":\"io\",\"some_pct\":0.1}]}");
	_cleanup_(jsonw_done) struct jsonw w;

	assert_good(&p);
	jsonw_init(&w, 4096);
	rules_write(p.rules, &w, NULL);
	assert_int_equal(jsonw_end(&w), 0);
	assert_int_equal(w.bytes, sizeof(right) - 1);
	assert_memory_equal(w.data, right, w.bytes);
}

/* A threshold of CPU time: its default window, its written form, and that it is read again. */
static void quiet_comes_back(void **state)
{
	static const char written[] = "\"when\":[{\"quiet_pct\":10.000,\"window_ms\":5000},"
				      "{\"quiet_pct\":0.125,\"window_ms\":10000}],";
	_cleanup_parsed_ struct parsed b = { 0 }, other = { 0 };
	_cleanup_parsed_ struct parsed a = parse_rules(
		"{\"name\":\"a\",\"match\":{\"comm\":\"x\"},\"when\":[{\"quiet_pct\":10},"
		"{\"window_ms\":10000,\"quiet_pct\":0.125}]}");
	_cleanup_(jsonw_done) struct jsonw w;
	const struct rule *r;

	assert_good(&a);
	r = &a.rules->rules[0];
	assert_true(r->when[0].quiet && r->when[1].quiet);
	assert_int_equal(r->when[0].milli_pct, 10000);
	assert_int_equal(r->pre_ms, 18000);
	jsonw_init(&w, 4096);
	rules_write(a.rules, &w, NULL);
	assert_non_null(memmem(w.data, w.bytes, written, sizeof(written) - 1));
	b = parse_n(w.data, w.bytes);
	assert_good(&b);
	assert_true(rule_equal(r, &b.rules->rules[0]));
	other = parse_rules(
		"{\"name\":\"a\",\"match\":{\"comm\":\"x\"},\"when\":[{\"quiet_pct\":10},"
		"{\"window_ms\":10000,\"quiet_pct\":0.126}]}");
	assert_good(&other);
	assert_false(rule_equal(r, &other.rules->rules[0]));
}

/* A threshold of threads has no window. */
static void stuck_comes_back(void **state)
{
	static const char written[] = "\"when\":[{\"stuck_threads_pct\":50.000}],";
	_cleanup_parsed_ struct parsed b = { 0 }, other = { 0 };
	_cleanup_parsed_ struct parsed a = parse_rules(
		"{\"name\":\"a\",\"match\":{\"comm\":\"x\"},\"when\":[{\"stuck_threads_pct\":50}]}");
	_cleanup_(jsonw_done) struct jsonw w;
	const struct rule *r;

	assert_good(&a);
	r = &a.rules->rules[0];
	assert_true(r->when[0].stuck && !r->when[0].quiet);
	assert_int_equal(r->when[0].milli_pct, 50000);
	assert_int_equal(r->pre_ms, 18000);
	jsonw_init(&w, 4096);
	rules_write(a.rules, &w, NULL);
	assert_non_null(memmem(w.data, w.bytes, written, sizeof(written) - 1));
	b = parse_n(w.data, w.bytes);
	assert_good(&b);
	assert_true(rule_equal(r, &b.rules->rules[0]));
	other = parse_rules(
		"{\"name\":\"a\",\"match\":{\"comm\":\"x\"},\"when\":[{\"stuck_threads_pct\":51}]}");
	assert_good(&other);
	assert_false(rule_equal(r, &other.rules->rules[0]));
}

/* Every share of some windows: written and read again it is the same stall. */
static void shares_come_back(void **state)
{
	static const int windows[] = { 500, 501, 777, 2000, 3001, 9999, 10000 };

	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		for (int pct = 1; pct <= 1000; pct += 7) {
			_cleanup_parsed_ struct parsed a = { 0 }, b = { 0 };
			_cleanup_(jsonw_done) struct jsonw w;
			char text[256];
			int right = (windows[i] * pct + 999) / 1000;

			snprintf(
				text, sizeof(text),
				"{\"name\":\"a\",\"match\":{\"comm\":\"x\"},\"when\":[{\"pressure\":"
				"\"cpu\",\"full_pct\":%d.%d,\"window_ms\":%d}]}",
				pct / 10, pct % 10, windows[i]);
			a = parse_rules(text);
			assert_good(&a);
			assert_int_equal(a.rules->rules[0].when[0].stall_ms, right);
			jsonw_init(&w, 4096);
			rules_write(a.rules, &w, NULL);
			b = parse_n(w.data, w.bytes);
			assert_good(&b);
			assert_true(rule_equal(&a.rules->rules[0], &b.rules->rules[0]));
		}
	}
}

static void tells_rules_apart(void **state)
{
	static const char *const others[] = {
		"\"match\":{\"comm\":\"y\"}",
		"\"match\":{\"comm_prefix\":\"x\"}",
		"\"match\":{\"comm\":\"x\",\"cgroup_prefix\":\"/\"}",
		"\"match\":{\"cgroup_prefix\":\"/\"}",
		"\"match\":{\"comm\":\"x\"},\"on\":\"exec\"",
		"\"match\":{\"comm\":\"x\"},\"when\":[{\"pressure\":\"io\",\"some_ms\":1}]",
		"\"match\":{\"comm\":\"x\"},\"capture\":{\"pre_ms\":1}",
		"\"match\":{\"comm\":\"x\"},\"capture\":{\"scope\":\"process\"}",
		"\"match\":{\"comm\":\"x\"},\"capture\":{\"unwind\":\"fp\"}",
		"\"match\":{\"comm\":\"x\"},\"capture\":{\"signals\":[\"oncpu\"]}",
		"\"match\":{\"comm\":\"x\"},\"capture\":{\"budget_s\":1}",
		"\"match\":{\"comm\":\"x\"},\"labels\":{\"a\":\"b\"}",
	};
	_cleanup_parsed_ struct parsed a =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"x\"}}");
	_cleanup_parsed_ struct parsed same = parse_rules(
		"{\"name\":\"b\",\"match\":{\"comm\":\"x\"},\"capture\":{\"pre_ms\":10000}}");

	assert_good(&a);
	assert_good(&same);
	assert_true(rule_equal(&a.rules->rules[0], &same.rules->rules[0]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		_cleanup_parsed_ struct parsed b = { 0 };
		char text[256];

		snprintf(text, sizeof(text), "{\"name\":\"a\",%s}", others[i]);
		b = parse_rules(text);
		assert_good(&b);
		assert_false(rule_equal(&a.rules->rules[0], &b.rules->rules[0]));
	}
}

static void names_are_the_tables(void **state)
{
	assert_string_equal(rules_resource_name(RESOURCE_CPU), "cpu");
	assert_string_equal(rules_resource_name(RESOURCE_IO), "io");
	assert_string_equal(rules_signal_name(SIGNAL_ONCPU), "oncpu");
	assert_string_equal(rules_signal_name(SIGNAL_RUNTIME), "runtime");
}

UNIT_TESTS(rules)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_is_not_prefix),
		cmocka_unit_test(the_most_special_wins),
		cmocka_unit_test(agrees_with_a_plain_search),
		cmocka_unit_test(matches_a_name_by_its_rule),
		cmocka_unit_test(finds_by_name),
		cmocka_unit_test(empty_sets_answer),
		cmocka_unit_test(writes_all_defaults),
		cmocka_unit_test(quiet_comes_back),
		cmocka_unit_test(stuck_comes_back),
		cmocka_unit_test(shares_come_back),
		cmocka_unit_test(tells_rules_apart),
		cmocka_unit_test(names_are_the_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
