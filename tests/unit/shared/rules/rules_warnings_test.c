/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/macro.h"
#include "tests/unit/shared/rules/rules_testing.h"

/* Each signal has a program, or a warning that there is none. */
#define KIND(id, object) 1u << SIGNAL_##id |
_Static_assert(((
#include "consumer/evidence/evidence_kinds.def"
			0u) ^
		RULES_SIGNALS_WITHOUT_PROGRAM) == RULES_SIGNALS_AUTO - 1,
	       "a program, or a warning that there is none");
#undef KIND

struct doubt {
	const char *rule; /* the members behind the name */
	const char *pointer, *part;
};

#define WHEN "\"when\":[{\"quiet_pct\":10}]"

static const struct doubt doubts[] = {
	{ WHEN ",\"match\":{\"comm\":\"nginx*\"}", "/rules/0/match/comm",
	  "must be \"comm_prefix\": \"nginx\"" },
	{ WHEN ",\"match\":{\"comm\":\"*\"}", "/rules/0/match/comm", "'*' in it, not a pattern" },
	{ WHEN ",\"match\":{\"comm\":\"pyth?n\"}", "/rules/0/match/comm", "'?' in it" },
	{ WHEN ",\"match\":{\"comm_prefix\":\"ngin*x\"}", "/rules/0/match/comm_prefix",
	  "whole name" },
	{ WHEN ",\"match\":{\"comm\":\"a|b\"}", "/rules/0/match/comm", "list of names" },
	{ WHEN ",\"match\":{\"comm\":\"/usr/sbin/nginx\"}", "/rules/0/match/comm",
	  "is a path, and a process's name has none before it; must be the name as in "
	  "/proc/PID/comm, as \"nginx\"" },
	{ WHEN ",\"match\":{\"comm_prefix\":\"/opt/\"}", "/rules/0/match/comm_prefix",
	  "is a path" },
	{ WHEN ",\"match\":{\"comm\":\"java -jar\"}", "/rules/0/match/comm", "as \"java\"" },
	{ WHEN ",\"match\":{\"comm\":\"node \"}", "/rules/0/match/comm", "space at an end" },
	{ WHEN ",\"match\":{\"comm\":\"[kswapd0]\"}", "/rules/0/match/comm", "brackets" },
	{ WHEN ",\"match\":{\"cgroup_prefix\":\"/sys/fs/cgroup/a.slice\"}",
	  "/rules/0/match/cgroup_prefix", "cgroup2 mount: \"/a.slice\"" },
	{ WHEN ",\"match\":{\"cgroup_prefix\":\"/sys/fs/cgroup\"}", "/rules/0/match/cgroup_prefix",
	  "cgroup2 mount: \"/\"" },
	{ WHEN ",\"match\":{\"cgroup_prefix\":\"/kube*/pod\"}", "/rules/0/match/cgroup_prefix",
	  "byte by byte" },
	{ WHEN ",\"match\":{\"cgroup_prefix\":\"/a//b\"}", "/rules/0/match/cgroup_prefix",
	  "without //" },
	{ WHEN ",\"match\":{\"cgroup_prefix\":\"/s/x.service/\"}", "/rules/0/match/cgroup_prefix",
	  "must be \"/s/x.service\"" },
	{ "\"match\":{\"comm\":\"x\"}", "/rules/0", "only by `trocar capture`" },
	{ WHEN ",\"match\":{\"comm\":\"x\"},\"capture\":{\"signals\":[\"oncpu\",\"runtime\"]}",
	  "/rules/0/capture/signals/1", "\"runtime\" has no program" },
	{ WHEN ",\"match\":{\"comm\":\"x\"},\"capture\":{\"signals\":[\"fault\"]}",
	  "/rules/0/capture/signals/0", "\"fault\" has no program" },
};

static void warns_of_likely_mistakes(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(doubts); i++) {
		_cleanup_parsed_ struct parsed p = { 0 };
		char text[512];

		snprintf(text, sizeof(text), "\n {\"name\":\"a\",%s}", doubts[i].rule);
		p = parse_rules(text);
		assert_good(&p);
		assert_int_equal(p.warnings.count, 1);
		assert_string_equal(p.warnings.items[0].pointer, doubts[i].pointer);
		if (!strstr(p.warnings.items[0].message, doubts[i].part))
			fail_msg("\"%s\" lacks \"%s\"", p.warnings.items[0].message,
				 doubts[i].part);
		assert_int_equal(p.warnings.items[0].line, 2);
		assert_true(p.warnings.items[0].column > 1);
	}
}

/* What looks strange and is right. */
static void keeps_quiet_about_the_rest(void **state)
{
	static const char *const fine[] = {
		WHEN ",\"match\":{\"comm\":\"kworker/0:1\"}",
		WHEN ",\"match\":{\"comm\":\"tmux: server\"}",
		WHEN ",\"match\":{\"comm\":\"-bash\"}",
		WHEN ",\"match\":{\"comm\":\"[x\"}",
		WHEN ",\"match\":{\"comm_prefix\":\"Web \"}",
		WHEN ",\"match\":{\"cgroup_prefix\":\"/\"}",
		WHEN ",\"match\":{\"cgroup_prefix\":\"/sys/fs/cgroups\"}",
		WHEN ",\"match\":{\"cgroup_prefix\":\"/user.slice/\"}",
		"\"match\":{\"comm\":\"x\"},\"when\":[]",
		"\"match\":{\"comm\":\"x\"},\"on\":\"exec\"",
		"\"match\":{\"cgroup_prefix\":\"/x\"},\"on\":\"oom_kill\"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		_cleanup_parsed_ struct parsed p = { 0 };
		char text[512];

		snprintf(text, sizeof(text), "{\"name\":\"a\",%s}", fine[i]);
		p = parse_rules(text);
		assert_good(&p);
		if (p.warnings.count)
			fail_msg("%s: %s", fine[i], p.warnings.items[0].message);
	}
}

/* The place of the match, for callers that add to a rule's warnings later. */
static void remembers_the_place_of_a_match(void **state)
{
	_cleanup_parsed_ struct parsed p =
		parse_rules("\n{\"name\":\"a\",\"match\":{\"comm\":\"x\"}},\n"
			    "{\"match\": {\"comm\":\"y\"},\"name\":\"b\"}");

	assert_good(&p);
	assert_int_equal(p.rules->rules[0].match_line, 2);
	assert_int_equal(p.rules->rules[0].match_column, 21);
	assert_int_equal(p.rules->rules[1].match_line, 3);
	assert_int_equal(p.rules->rules[1].match_column, 11);
}

UNIT_TESTS(rules_warnings)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(warns_of_likely_mistakes),
		cmocka_unit_test(keeps_quiet_about_the_rest),
		cmocka_unit_test(remembers_the_place_of_a_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
