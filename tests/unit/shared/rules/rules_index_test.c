/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/shared/rules/rules_testing.h"

static void assert_warning(const struct parsed *p, size_t i, const char *pointer,
			   const char *narrow, const char *wide)
{
	char part[128];

	assert_true(i < p->warnings.kept);
	assert_string_equal(p->warnings.items[i].pointer, pointer);
	snprintf(part, sizeof(part), "\"%s\" is within the prefix of \"%s\"", narrow, wide);
	if (!strstr(p->warnings.items[i].message, part))
		fail_msg("\"%s\" lacks \"%s\"", p->warnings.items[i].message, part);
}

/* Leaves the warnings of prefixes alone; rules_warnings_test.c is about the others. */
static void keep_prefixes(struct parsed *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->warnings.kept; i++) {
		struct rules_fault *f = &p->warnings.items[i];

		if (strstr(f->message, "is within the prefix")) {
			p->warnings.items[kept++] = *f;
			continue;
		}
		free(f->pointer);
		free(f->message);
		p->warnings.count--;
	}
	p->warnings.kept = kept;
}

static void same_matches_are_faults(void **state)
{
	_cleanup_parsed_ struct parsed p =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"x\",\"cgroup_prefix\":\"/a\"}},"
			    "{\"name\":\"b\",\"match\":{\"cgroup_prefix\":\"/c\"}},"
			    "{\"name\":\"c\",\"match\":{\"cgroup_prefix\":\"/a\",\"comm\":\"x\"}},"
			    "{\"name\":\"d\",\"match\":{\"comm\":\"x\",\"cgroup_prefix\":\"/a\"}},"
			    "{\"name\":\"e\",\"match\":{\"cgroup_prefix\":\"/c\"}},"
			    "{\"name\":\"f\",\"match\":{\"comm\":\"x\"}},"
			    "{\"name\":\"g\",\"match\":{\"comm_prefix\":\"x\"}}");

	assert_int_equal(p.faults.count, 3);
	assert_fault(&p, 0, "/rules/2/match", "match of /rules/0 (\"a\"), so that \"c\"");
	assert_fault(&p, 1, "/rules/3/match", "match of /rules/0 (\"a\"), so that \"d\"");
	assert_fault(&p, 2, "/rules/4/match", "match of /rules/1 (\"b\"), so that \"e\"");
}

static void same_names_are_faults(void **state)
{
	_cleanup_parsed_ struct parsed p =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"1\"}},"
			    "{\"name\":\"b\",\"match\":{\"comm\":\"2\"}},"
			    "{\"name\":\"a\",\"match\":{\"comm\":\"3\"}}");

	assert_only_fault(&p, "/rules/2/name", "\"a\" is the name of /rules/0 already");
}

/* A faulty match or name does not count against those of others. */
static void faulty_rules_are_not_compared(void **state)
{
	_cleanup_parsed_ struct parsed p =
		parse_rules("{\"name\":\"a\",\"match\":{\"comm\":\"x\"}},"
			    "{\"name\":\"b\",\"match\":{\"comm\":\"x\",\"cgroup_prefix\":\"no\"}},"
			    "{\"name\":\"X\",\"match\":{\"comm\":\"y\"}},"
			    "{\"name\":\"X\",\"match\":{\"comm\":\"z\"}}");

	assert_int_equal(p.faults.count, 3);
	assert_fault(&p, 0, "/rules/1/match/cgroup_prefix", "\"no\"");
	assert_fault(&p, 1, "/rules/2/name", "small letter");
	assert_fault(&p, 2, "/rules/3/name", "small letter");
}

static void comm_prefixes_shadow(void **state)
{
	_cleanup_parsed_ struct parsed p = parse_rules(
		"{\"name\":\"exact\",\"match\":{\"comm\":\"worker-db\"}},"
		"{\"name\":\"wide\",\"match\":{\"comm_prefix\":\"worker\"}},"
		"{\"name\":\"narrow\",\"match\":{\"comm_prefix\":\"worker-d\"}},"
		"{\"name\":\"same\",\"match\":{\"comm\":\"worker\"}},"
		"{\"name\":\"other\",\"match\":{\"comm_prefix\":\"work\",\"cgroup_prefix\":\"/a\"}},"
		"{\"name\":\"apart\",\"match\":{\"comm\":\"working\",\"cgroup_prefix\":\"/b\"}},"
		"{\"name\":\"below\",\"match\":{\"comm\":\"works\",\"cgroup_prefix\":\"/a/b\"}},"
		"{\"name\":\"above\",\"match\":{\"comm\":\"workz\",\"cgroup_prefix\":\"/\"}}");

	assert_good(&p);
	keep_prefixes(&p);
	assert_int_equal(p.warnings.count, 6);
	assert_warning(&p, 0, "/rules/0/match", "exact", "narrow");
	assert_warning(&p, 1, "/rules/1/match", "wide", "other");
	assert_warning(&p, 2, "/rules/2/match", "narrow", "wide");
	assert_warning(&p, 3, "/rules/3/match", "same", "wide");
	assert_warning(&p, 4, "/rules/6/match", "below", "other");
	assert_warning(&p, 5, "/rules/7/match", "above", "other");
}

static void cgroup_prefixes_shadow(void **state)
{
	_cleanup_parsed_ struct parsed p = parse_rules(
		"{\"name\":\"abc\",\"match\":{\"cgroup_prefix\":\"/a/b/c\"}},"
		"{\"name\":\"a\",\"match\":{\"cgroup_prefix\":\"/a\"}},"
		"{\"name\":\"b\",\"match\":{\"cgroup_prefix\":\"/b\"}},"
		"{\"name\":\"ab\",\"match\":{\"cgroup_prefix\":\"/a/b\"}},"
		"{\"name\":\"xa\",\"match\":{\"comm\":\"x\",\"cgroup_prefix\":\"/a\"}},"
		"{\"name\":\"xab\",\"match\":{\"comm\":\"x\",\"cgroup_prefix\":\"/a/b\"}},"
		"{\"name\":\"x\",\"match\":{\"comm\":\"x\"}}");

	assert_good(&p);
	keep_prefixes(&p);
	assert_int_equal(p.warnings.count, 3);
	assert_warning(&p, 0, "/rules/0/match", "abc", "ab");
	assert_warning(&p, 1, "/rules/3/match", "ab", "a");
	assert_warning(&p, 2, "/rules/5/match", "xab", "xa");
}

/* Prefixes of every length within each other: the stack holds them all. */
static void deepest_nesting_fits(void **state)
{
	static char text[256 * 400];
	_cleanup_parsed_ struct parsed p = { 0 };
	size_t n = 0;

	for (int i = 1; i <= 15; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "{\"name\":\"c%d\",\"match\":{\"comm_prefix\":\"%.*s\"}},", i,
				      i, "aaaaaaaaaaaaaaa");
	for (int i = 1; i <= 255; i++) {
		char path[256] = "/";

		memset(path + 1, 'p', (size_t)i - 1);
		path[i] = '\0';
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "{\"name\":\"g%d\",\"match\":{\"cgroup_prefix\":\"%s\"}}%s",
				      i, path, i < 255 ? "," : "");
	}
	p = parse_rules(text);
	assert_good(&p);
	keep_prefixes(&p);
	assert_int_equal(p.warnings.count, 14 + 254);
	assert_string_equal(rules_match(p.rules, "aaaaaaaaaaaaaab", NULL)->name, "c14");
	assert_string_equal(rules_match_cgroup(p.rules, "/pppq")->name, "g4");
}

UNIT_TESTS(rules_index)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_matches_are_faults),
		cmocka_unit_test(same_names_are_faults),
		cmocka_unit_test(faulty_rules_are_not_compared),
		cmocka_unit_test(comm_prefixes_shadow),
		cmocka_unit_test(cgroup_prefixes_shadow),
		cmocka_unit_test(deepest_nesting_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
