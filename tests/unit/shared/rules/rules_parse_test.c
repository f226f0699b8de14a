/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <stdlib.h>

#include "shared/json/jsonw.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"
#include "tests/unit/shared/rules/rules_testing.h"

/* One rule with these members beside its name and match. */
static struct parsed parse_with(const char *members)
{
	char text[4096];

	snprintf(text, sizeof(text), "{\"name\":\"a\",\"match\":{\"comm\":\"x\"},%s}", members);
	return parse_rules(text);
}

static void takes_all_keys(void **state)
{
	_cleanup_parsed_ struct parsed p = parse(
		"{\"version\":1,\"budget_s\":3600,\"rules\":[{\"name\":\"a-1_b\",\"match\":{\"comm_prefix\":"
		"\"kworker/0:\",\"cgroup_prefix\":\"/s\"},\"when\":[{\"pressure\":\"memory\",\"full_ms\":7,"
		"\"window_ms\":500},{\"pressure\":\"io\",\"some_pct\":33.3}],\"on\":\"exec\",\"capture\":{"
		"\"pre_ms\":0,\"during_ms\":100,\"cooldown_ms\":3600000,\"scope\":\"process\",\"signals\":["
		"\"oncpu\",\"runtime\"],\"budget_s\":1},\"labels\":{\"_k.-\":\"v\",\"Z9\":\"\"}}]}");
	const struct rule *r;

	assert_good(&p);
	assert_int_equal(p.rules->version, 1);
	assert_int_equal(p.rules->budget_s, 3600);
	assert_int_equal(p.rules->count, 1);
	r = &p.rules->rules[0];
	assert_string_equal(r->name, "a-1_b");
	assert_int_equal(r->n_comms, 1);
	assert_string_equal(r->comms[0], "kworker/0:");
	assert_false(r->comm_exact);
	assert_string_equal(r->cgroup_prefix, "/s");
	assert_int_equal(r->n_when, 2);
	assert_true(r->when[0].full && !r->when[0].percent &&
		    r->when[0].resource == RESOURCE_MEMORY);
	assert_int_equal(r->when[0].stall_ms, 7);
	assert_int_equal(r->when[0].window_ms, 500);
	assert_true(!r->when[1].full && r->when[1].percent && r->when[1].resource == RESOURCE_IO);
	assert_int_equal(r->when[1].stall_ms, 666);
	assert_int_equal(r->when[1].window_ms, 2000);
	assert_true(r->on_exec && r->scope_process && !r->signals_auto);
	assert_int_equal(r->signals, 1u << SIGNAL_ONCPU | 1u << SIGNAL_RUNTIME);
	assert_int_equal(r->pre_ms + r->during_ms + r->cooldown_ms + r->budget_s, 3600101);
	assert_int_equal(r->n_labels, 2);
	assert_string_equal(r->labels[0].key, "_k.-");
	assert_string_equal(r->labels[1].value, "");
}

static void accepts_rules_without_a_signal(void **state)
{
	_cleanup_parsed_ struct parsed exec =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"x\"},\"on\":\"exec\"}");
	_cleanup_parsed_ struct parsed kill = parse_rules(
		"{\"name\":\"a\",\"match\":{\"cgroup_prefix\":\"/x\"},\"on\":\"oom_kill\"}");

	assert_good(&exec);
	assert_good(&kill);
	assert_true(exec.rules->rules[0].on_exec && !exec.rules->rules[0].on_oom_kill);
	assert_true(kill.rules->rules[0].on_oom_kill && !kill.rules->rules[0].on_exec);
	/* A cgroup is enough: the kernel side knows the killed process. */
	assert_int_equal(kill.faults.count, 0);
}

static void sets_defaults(void **state)
{
	_cleanup_parsed_ struct parsed p =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"x\"}}");
	const struct rule *r;

	assert_good(&p);
	r = &p.rules->rules[0];
	assert_int_equal(p.rules->budget_s, 600);
	assert_int_equal(r->pre_ms, 10000);
	assert_int_equal(r->during_ms, 3000);
	assert_int_equal(r->cooldown_ms, 30000);
	assert_int_equal(r->budget_s, 600);
	assert_true(r->signals_auto && !r->scope_process && !r->on_exec && r->comm_exact);
	assert_int_equal(r->n_when + r->n_labels + r->signals, 0);
	assert_null(r->cgroup_prefix);
}

static void the_examples_are_good(void **state)
{
	static const char *const names[] = { "rules-web.json", "rules-common.json" };
	const char *directory = getenv("TROCAR_EXAMPLES");
	int dir;

	assert_non_null(directory);
	dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_parsed_ struct parsed p = { 0 };
		_cleanup_free_ char *text = NULL;
		size_t bytes;

		assert_int_equal(io_read_file(dir, names[i], RULES_TEXT_BYTES, &text, &bytes), 0);
		p = parse_n(text, bytes);
		assert_good(&p);
		assert_int_equal(p.warnings.count, 0);
		assert_true(p.rules->count >= 4);
	}
	close(dir);
}

struct bad {
	const char *members, *pointer, *part;
};

static const struct bad single_faults[] = {
	{ "\"on\":\"fork\"", "/rules/0/on", "is \"fork\"; must be \"exec\"" },
	{ "\"on\":1", "/rules/0/on", "is 1; must be \"exec\"" },
	{ "\"what\":1", "/rules/0/what", "name, match, when, on, capture, labels" },
	{ "\"capture\":[]", "/rules/0/capture", "is an array; must be an object" },
	{ "\"capture\":{\"pre_ms\":30001}", "/rules/0/capture/pre_ms",
	  "is 30001; must be a whole number from 0 to 30000" },
	{ "\"capture\":{\"during_ms\":99}", "/rules/0/capture/during_ms", "from 100 to 60000" },
	{ "\"capture\":{\"during_ms\":60001}", "/rules/0/capture/during_ms", "from 100" },
	{ "\"capture\":{\"cooldown_ms\":-1}", "/rules/0/capture/cooldown_ms", "is -1" },
	{ "\"capture\":{\"cooldown_ms\":3600001}", "/rules/0/capture/cooldown_ms", "3600000" },
	{ "\"capture\":{\"budget_s\":0}", "/rules/0/capture/budget_s", "from 1 to 3600" },
	{ "\"capture\":{\"budget_s\":1.0}", "/rules/0/capture/budget_s",
	  "is 1.0; must be a whole" },
	{ "\"capture\":{\"budget_s\":99999999999999999999999}", "/rules/0/capture/budget_s",
	  "from 1" },
	{ "\"capture\":{\"budget_s\":4294967297}", "/rules/0/capture/budget_s", "from 1" },
	{ "\"capture\":{\"budget_s\":true}", "/rules/0/capture/budget_s", "is true" },
	{ "\"capture\":{\"unwind\":\"dwarf\"}", "/rules/0/capture/unwind",
	  "\"auto\", \"fp\" or \"table\"" },
	{ "\"capture\":{\"scope\":\"host\"}", "/rules/0/capture/scope",
	  "\"cgroup\" or \"process\"" },
	{ "\"capture\":{\"signals\":[]}", "/rules/0/capture/signals", "has 0 elements" },
	{ "\"capture\":{\"signals\":[\"x\"]}", "/rules/0/capture/signals/0", "oncpu offcpu" },
	{ "\"capture\":{\"signals\":[\"oncpu\",\"oncpu\"]}", "/rules/0/capture/signals/1",
	  "repeats" },
	{ "\"capture\":{\"signals\":[\"oncpu\",\"auto\"]}", "/rules/0/capture/signals/1",
	  "\"auto\"" },
	{ "\"capture\":{\"signals\":[null]}", "/rules/0/capture/signals/0", "is null" },
	{ "\"labels\":{\"a b\":\"x\"}", "/rules/0/labels/a b", "is no label" },
	{ "\"labels\":{\"\":\"x\"}", "/rules/0/labels/", "is no label" },
	{ "\"labels\":{\"a/~\":\"x\"}", "/rules/0/labels/a~1~0", "is no label" },
	{ "\"labels\":{\"a\":\"x\\u0007y\"}", "/rules/0/labels/a", "without control characters" },
	{ "\"labels\":{\"a\":1}", "/rules/0/labels/a", "is 1; must be a string" },
	{ "\"labels\":{\"a\":\"\\u0000\"}", "/rules/0/labels/a", "without control" },
	{ "\"when\":{}", "/rules/0/when", "is an object; must be an array" },
	{ "\"when\":[1]", "/rules/0/when/0", "is 1; must be an object" },
	{ "\"when\":[{\"some_ms\":1}]", "/rules/0/when/0", "lacks \"pressure\"" },
	{ "\"when\":[{\"some_ms\":1}]", "/rules/0/when/0", "quiet_pct or stuck_threads_pct" },
	{ "\"when\":[{\"stuck_threads_pct\":0}]", "/rules/0/when/0/stuck_threads_pct",
	  "is 0; must be a number from 0.1 to 100" },
	{ "\"when\":[{\"stuck_threads_pct\":101}]", "/rules/0/when/0/stuck_threads_pct",
	  "from 0.1 to 100" },
	{ "\"when\":[{\"stuck_threads_pct\":50,\"window_ms\":5000}]", "/rules/0/when/0",
	  "must have it alone" },
	{ "\"when\":[{\"stuck_threads_pct\":50,\"quiet_pct\":10}]", "/rules/0/when/0",
	  "must have it alone" },
	{ "\"when\":[{\"quiet_pct\":0}]", "/rules/0/when/0/quiet_pct",
	  "is 0; must be a number from 0.1 to 50" },
	{ "\"when\":[{\"quiet_pct\":50.1}]", "/rules/0/when/0/quiet_pct", "from 0.1 to 50" },
	{ "\"when\":[{\"quiet_pct\":\"10\"}]", "/rules/0/when/0/quiet_pct", "from 0.1 to 50" },
	{ "\"when\":[{\"quiet_pct\":10,\"window_ms\":4999}]", "/rules/0/when/0/window_ms",
	  "is 4999; must be at least 5000 with quiet_pct" },
	{ "\"when\":[{\"quiet_pct\":10,\"window_ms\":10001}]", "/rules/0/when/0/window_ms",
	  "from 500 to 10000" },
	{ "\"when\":[{\"quiet_pct\":10,\"pressure\":\"cpu\"}]", "/rules/0/when/0",
	  "one of the two" },
	{ "\"when\":[{\"quiet_pct\":10,\"some_ms\":5}]", "/rules/0/when/0", "one of the two" },
	{ "\"when\":[{\"pressure\":\"net\",\"some_ms\":1}]", "/rules/0/when/0/pressure",
	  "\"cpu\"" },
	{ "\"when\":[{\"pressure\":\"io\"}]", "/rules/0/when/0", "has 0 thresholds" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_ms\":1,\"full_pct\":1}]", "/rules/0/when/0",
	  "has 2" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_ms\":2001}]", "/rules/0/when/0/some_ms",
	  "is 2001; must be at most window_ms, here 2000" },
	{ "\"when\":[{\"pressure\":\"io\",\"full_ms\":501,\"window_ms\":500}]",
	  "/rules/0/when/0/full_ms", "here 500" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_ms\":0}]", "/rules/0/when/0/some_ms", "from 1" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_ms\":9000,\"window_ms\":20000}]",
	  "/rules/0/when/0/window_ms", "from 500 to 10000" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_ms\":1,\"window_ms\":499}]",
	  "/rules/0/when/0/window_ms", "from 500 to 10000" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_pct\":0.09}]", "/rules/0/when/0/some_pct",
	  "0.1 to 100" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_pct\":100.1}]", "/rules/0/when/0/some_pct",
	  "is 100.1" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_pct\":1e999}]", "/rules/0/when/0/some_pct",
	  "0.1 to" },
	{ "\"when\":[{\"pressure\":\"io\",\"some_pct\":\"5\"}]", "/rules/0/when/0/some_pct",
	  "is \"5\"" },
	{ "\"on\":\"exec\",\"on\":\"exec\"", "/rules/0/on", "more than once" },
	{ "\"on\":\"exec\",\"o\\u006e\":\"exec\"", "/rules/0/on", "more than once" },
};

static void names_single_faults(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(single_faults); i++) {
		_cleanup_parsed_ struct parsed p = parse_with(single_faults[i].members);

		assert_only_fault(&p, single_faults[i].pointer, single_faults[i].part);
	}
}

static void names_faults_of_matches(void **state)
{
	static const struct bad bad[] = {
		{ "{}", "/rules/0/match", "names nothing" },
		{ "[]", "/rules/0/match", "is an array" },
		{ "{\"comm\":\"\"}", "/rules/0/match/comm", "1 to 15 bytes" },
		{ "{\"comm\":\"1234567890123456\"}", "/rules/0/match/comm", "1 to 15 bytes" },
		{ "{\"comm\":\"a\\u0000b\"}", "/rules/0/match/comm", "without NUL" },
		{ "{\"comm\":null}", "/rules/0/match/comm", "is null" },
		{ "{\"comm_prefix\":7}", "/rules/0/match/comm_prefix", "is 7" },
		{ "{\"comm\":\"a\",\"comm_prefix\":\"b\"}", "/rules/0/match", "one of the two" },
		{ "{\"cgroup_prefix\":\"\"}", "/rules/0/match/cgroup_prefix", "beginning with /" },
		{ "{\"cgroup_prefix\":\"a/b\"}", "/rules/0/match/cgroup_prefix",
		  "beginning with /" },
		{ "{\"exe\":\"a\"}", "/rules/0/match/exe", "comm, comm_prefix, cgroup_prefix" },
		{ "{\"unit\":\"a\"}", "/rules/0/match/unit",
		  "(did you mean \"cgroup_prefix\": \"/system.slice/NAME.service\"?)" },
		{ "{\"comm\":\"x\",\"cgroup\":\"/a\"}", "/rules/0/match/cgroup",
		  "\"cgroup_prefix\": \"/PATH\"" },
		{ "{\"comm\":\"\\ud800\"}", "/rules/0/match/comm", "half of a pair" },
		{ "{\"comm\":\"a\\\\\\uDFFFb\"}", "/rules/0/match/comm", "half of a pair" },
		{ "{\"comm\":[\"b\",\"\\ud83d\\u0041\"]}", "/rules/0/match/comm/1",
		  "half of a pair" },
		{ "{\"comm_prefix\":\"\\ude00\\ud83d\"}", "/rules/0/match/comm_prefix",
		  "half of a pair" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_parsed_ struct parsed p = { 0 };
		char text[256];

		snprintf(text, sizeof(text), "{\"name\":\"a\",\"match\":%s}", bad[i].members);
		p = parse_rules(text);
		assert_fault(&p, p.faults.count - 1, bad[i].pointer, bad[i].part);
	}
}

/* An execve shows only by the name that it gives. */
static void an_exec_needs_a_name(void **state)
{
	_cleanup_parsed_ struct parsed bad = parse_rules(
		"{\"name\":\"a\",\"on\":\"exec\",\"match\":{\"cgroup_prefix\":\"/a\"}}");
	_cleanup_parsed_ struct parsed good = parse_rules(
		"{\"name\":\"a\",\"on\":\"exec\",\"match\":{\"comm\":\"x\",\"cgroup_prefix\":\"/a\"}}");

	assert_fault(&bad, 0, "/rules/0/on", "together with comm or comm_prefix");
	assert_good(&good);
}

static void names_faults_of_the_whole(void **state)
{
	static const struct bad bad[] = {
		{ "", "", "ends early" },
		{ "   ", "", "ends early" },
		{ "{\"version\":1,\"rules\":[", "", "ends early" },
		{ "7", "", "must be" },
		{ "[]", "", "is an array; must be an object" },
		{ "{\"version\":1,\"rules\":[]} x", "", "not JSON" },
		{ "{\"version\":1,\"rules\":[],}", "", "not JSON" },
		{ "{'version':1,\"rules\":[]}", "", "not JSON" },
		{ "{\"version\":1,\"rules\":[]}//", "", "not JSON" },
		{ "{\"version\":1,\"rules\":[NaN]}", "", "not JSON" },
		{ "{\"version\":1,\"rules\":[\"\xff\"]}", "", "not JSON" },
		{ "{\"version\":1,\"rules\":[\"\xed\xa0\x80\"]}", "", "UTF-8" },
		{ "{\"version\":1,\"rules\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}", "",
		  "nested" },
		{ "{\"version\":2,\"rules\":[]}", "/version", "is 2; must be 1" },
		{ "{\"rules\":[]}", "", "lacks \"version\"; must have it: 1" },
		{ "{\"version\":1}", "", "lacks \"rules\"" },
		{ "{\"version\":1,\"rules\":{}}", "/rules", "is an object; must be an array" },
		{ "{\"version\":1,\"rules\":[7]}", "/rules/0", "is 7; must be an object" },
		{ "{\"version\":1,\"rules\":[],\"budget_s\":0}", "/budget_s", "from 1 to 3600" },
		{ "{\"version\":1,\"rules\":[],\"x\":1}", "/x",
		  "version, rules, budget_s, defaults" },
		{ "{\"version\":1,\"rules\":[],\"defaults\":[]}", "/defaults",
		  "an object with when" },
		{ "{\"version\":1,\"rules\":[],\"defaults\":{\"match\":{}}}", "/defaults/match",
		  "when, capture, labels" },
		{ "{\"version\":1,\"rules\":[],\"defaults\":{\"capture\":{\"budget_s\":0}}}",
		  "/defaults/capture/budget_s", "from 1 to 3600" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_parsed_ struct parsed p = parse(bad[i].members);

		assert_only_fault(&p, bad[i].pointer, bad[i].part);
	}
}

static void a_nul_byte_is_a_fault(void **state)
{
	static const char text[] = "{\"version\":1,\n\"rules\":[]}\0{";
	_cleanup_parsed_ struct parsed p = parse_n(text, sizeof(text));

	assert_only_fault(&p, "", "NUL");
	assert_int_equal(p.faults.items[0].line, 2);
}

/* Columns count characters: "\u00e9" and "\u20ac" are one each. */
static void names_columns(void **state)
{
	_cleanup_parsed_ struct parsed p = parse(
		"{\"version\":1,\n\"rules\":[ {\"name\":\"\xc3\xa9\xe2\x82\xac\", \"x\":1, \"y\":2,\n"
		"\"match\":{\"comm\":\"a\"}}]}");

	assert_int_equal(p.faults.count, 3);
	assert_fault(&p, 0, "/rules/0/name", "small letter");
	assert_fault(&p, 1, "/rules/0/x", "no key");
	assert_fault(&p, 2, "/rules/0/y", "no key");
	assert_int_equal(p.faults.items[0].line, 2);
	assert_int_equal(p.faults.items[0].column, 19);
	assert_int_equal(p.faults.items[1].column, 29);
	assert_int_equal(p.faults.items[2].column, 36);
}

static void names_all_faults_in_order(void **state)
{
	_cleanup_parsed_ struct parsed p = parse("{\"version\":0,\n"
						 "\"rules\":[\n"
						 "{\"name\":\"b\",\"match\":{\"comm\":\"x\"}},\n"
						 "{\"match\":{\"comm\":\"x\"},\n"
						 " \"name\":\"b\", \"y\":1, \"y\":2},\n"
						 "{\"name\":\"c\"}],\n"
						 "\"z\":1}");

	assert_int_equal(p.faults.count, 7);
	assert_fault(&p, 0, "/version", "must be 1");
	assert_fault(&p, 1, "/rules/1/match", "match of /rules/0");
	assert_fault(&p, 2, "/rules/1/name", "name of /rules/0");
	assert_fault(&p, 3, "/rules/1/y", "more than once");
	assert_fault(&p, 4, "/rules/1/y", "no key that is known");
	assert_fault(&p, 5, "/rules/2", "lacks \"match\"");
	assert_fault(&p, 6, "/z", "no key that is known");
	assert_int_equal(p.faults.items[0].line, 1);
	assert_int_equal(p.faults.items[1].line, 4);
	assert_int_equal(p.faults.items[2].line, 5);
	assert_int_equal(p.faults.items[5].line, 6);
	assert_int_equal(p.faults.items[6].line, 7);
}

static void counts_more_faults_than_it_keeps(void **state)
{
	static char elements[2 * 5000 + 1];
	_cleanup_parsed_ struct parsed p = { 0 };

	for (size_t i = 0; i < 5000; i++)
		memcpy(elements + 2 * i, i < 4999 ? "1," : "1", i < 4999 ? 2 : 1);
	p = parse_rules(elements);
	assert_fault(&p, 999, "/rules/999", "is 1");
	assert_int_equal(p.faults.count, 5000);
	assert_int_equal(p.faults.kept, RULES_FAULTS_MAX);
}

/* As many rules, and as much text, as the walls allow; and one more of each. */
static void holds_the_walls(void **state)
{
	_cleanup_free_ char *text = malloc(RULES_TEXT_BYTES + 2);
	size_t n = (size_t)sprintf(text, "{\"version\":1,\"rules\":[");

	for (unsigned int i = 0; i < RULES_MAX; i++)
		n += (size_t)sprintf(text + n,
				     "%s{\"name\":\"r%u\",\"match\":{\"comm_prefix\":\"c%u\"}}",
				     i ? "," : "", i, i);
	memset(text + n, ' ', RULES_TEXT_BYTES + 2 - n);
	memcpy(text + n, "]}", 2);
	{
		_cleanup_parsed_ struct parsed p = parse_n(text, RULES_TEXT_BYTES);

		assert_good(&p);
		assert_int_equal(p.rules->count, RULES_MAX);
		assert_string_equal(rules_match(p.rules, "c1234x", NULL)->name, "r1234");
		assert_int_equal(p.warnings.count, RULES_MAX + RULES_MAX - 10);
		assert_int_equal(p.warnings.kept, RULES_FAULTS_MAX);
	}
	{
		_cleanup_parsed_ struct parsed p = parse_n(text, RULES_TEXT_BYTES + 1);

		assert_only_fault(&p, "", "has 1048577 bytes; must have at most 1048576");
	}
	memcpy(text + n, ",{\"name\":\"z\",\"match\":{\"comm\":\"z\"}}]}", 36);
	{
		_cleanup_parsed_ struct parsed p = parse_n(text, RULES_TEXT_BYTES);

		assert_only_fault(&p, "/rules", "has 10001 rules; must have at most 10000");
	}
}

static void holds_the_walls_of_a_rule(void **state)
{
	_cleanup_parsed_ struct parsed p = { 0 }, q = { 0 };
	char text[4096], name[66];
	size_t n;

	memset(name, 'n', sizeof(name));
	n = (size_t)sprintf(
		text, "{\"name\":\"%.64s\",\"match\":{\"comm\":\"123456789012345\"},\"when\":[",
		name);
	for (int i = 0; i < RULE_WHEN_MAX; i++)
		n += (size_t)sprintf(text + n, "%s{\"pressure\":\"io\",\"some_ms\":1}",
				     i ? "," : "");
	n += (size_t)sprintf(text + n, "],\"labels\":{");
	for (int i = 0; i < RULE_LABELS_MAX; i++)
		n += (size_t)sprintf(text + n, "%s\"%c%.62s\":\"x\"", i ? "," : "", 'a' + i, name);
	sprintf(text + n, "}}");
	p = parse_rules(text);
	assert_good(&p);
	assert_int_equal(p.rules->rules[0].n_when, RULE_WHEN_MAX);
	assert_int_equal(p.rules->rules[0].n_labels, RULE_LABELS_MAX);

	n = (size_t)sprintf(text, "{\"name\":\"%.65s\",\"match\":{\"comm\":\"x\"},\"when\":[",
			    name);
	for (int i = 0; i < RULE_WHEN_MAX + 1; i++)
		n += (size_t)sprintf(text + n, "%s{\"pressure\":\"io\",\"some_ms\":1}",
				     i ? "," : "");
	n += (size_t)sprintf(text + n, "],\"labels\":{");
	for (int i = 0; i < RULE_LABELS_MAX + 1; i++)
		n += (size_t)sprintf(text + n, "%s\"%c\":\"x\"", i ? "," : "", 'a' + i);
	sprintf(text + n, "}}");
	q = parse_rules(text);
	assert_int_equal(q.faults.count, 3);
	assert_fault(&q, 0, "/rules/0/name", "1 to 64 bytes");
	assert_fault(&q, 1, "/rules/0/when", "has 9 thresholds; must have at most 8");
	assert_fault(&q, 2, "/rules/0/labels", "has 17 labels; must have at most 16");
}

static void writes_faults(void **state)
{
	static const char right[] =
		"[{\"pointer\":\"/version\",\"message\":\"is \\\"x\\\"; must be 1\",\"line\":1,"
		"\"column\":12}]";
	_cleanup_parsed_ struct parsed p = parse("{\"version\":\"x\",\"rules\":[]}");
	_cleanup_(jsonw_done) struct jsonw w;

	jsonw_init(&w, 4096);
	rules_faults_write(&p.faults, &w, NULL);
	assert_int_equal(jsonw_end(&w), 0);
	assert_int_equal(w.bytes, sizeof(right) - 1);
	assert_memory_equal(w.data, right, w.bytes);
}

UNIT_TESTS(rules_parse)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_all_keys),
		cmocka_unit_test(accepts_rules_without_a_signal),
		cmocka_unit_test(sets_defaults),
		cmocka_unit_test(the_examples_are_good),
		cmocka_unit_test(names_single_faults),
		cmocka_unit_test(names_faults_of_matches),
		cmocka_unit_test(an_exec_needs_a_name),
		cmocka_unit_test(names_faults_of_the_whole),
		cmocka_unit_test(a_nul_byte_is_a_fault),
		cmocka_unit_test(names_columns),
		cmocka_unit_test(names_all_faults_in_order),
		cmocka_unit_test(counts_more_faults_than_it_keeps),
		cmocka_unit_test(holds_the_walls),
		cmocka_unit_test(holds_the_walls_of_a_rule),
		cmocka_unit_test(writes_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
