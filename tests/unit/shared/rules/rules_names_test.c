/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules with a list of names. */
#include <stdlib.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"
#include "tests/unit/shared/rules/rules_testing.h"

/* The text is not terminated. */
static const char *find(const struct jsonw *w, const char *part)
{
	return memmem(w->data, w->bytes, part, strlen(part));
}

/* A list of names is one rule with the name of each; it is written as it was read. */
static void reads_a_list_of_names(void **state)
{
	_cleanup_parsed_ struct parsed p = parse_rules(
		"{\"name\":\"php\",\"match\":{\"comm\":[\"php-fpm8.2\",\"php-fpm8.3\"]}},"
		"{\"name\":\"one\",\"match\":{\"comm\":[\"one\"],\"cgroup_prefix\":\"/s\"}}");
	const struct rule *r;
	struct jsonw w;

	assert_good(&p);
	r = &p.rules->rules[0];
	assert_int_equal(r->n_comms, 2);
	assert_int_equal(p.rules->n_entries, 3);
	assert_true(rule_has_comm(r, "php-fpm8.3", true));
	assert_false(rule_has_comm(r, "php-fpm8.3", false) || rule_has_comm(r, "php-fpm", true));
	assert_ptr_equal(rules_match(p.rules, "php-fpm8.2", NULL), r);
	assert_ptr_equal(rules_match(p.rules, "php-fpm8.3", "/x"), r);
	assert_null(rules_match(p.rules, "php-fpm8.4", NULL));
	assert_ptr_equal(rules_match(p.rules, "one", "/s/a"), &p.rules->rules[1]);
	jsonw_init(&w, 4096);
	rules_write(p.rules, &w, NULL);
	assert_non_null(find(&w, "\"comm\":[\"php-fpm8.2\",\"php-fpm8.3\"]"));
	assert_non_null(find(&w, "\"comm\":\"one\",\"cgroup_prefix\""));
	jsonw_done(&w);
}

static void refuses_wrong_lists(void **state)
{
	static const char *const wrong[][3] = {
		{ "[]", "/rules/1/match/comm", "has 0 names; must have 1 to 64" },
		{ "[\"a\",1]", "/rules/1/match/comm/1", "must be a string of 1 to 15 bytes" },
		{ "[\"a\",\"\"]", "/rules/1/match/comm/1", "must be a string of 1 to 15 bytes" },
		{ "[[\"a\"]]", "/rules/1/match/comm/0", "must be a string of 1 to 15 bytes" },
		{ "{}", "/rules/1/match/comm", "must be a string of 1 to 15 bytes" },
		{ "[\"a\",\"b\",\"a\"]", "/rules/1/match/comm", "has \"a\" more than once" },
		{ "[\"c\",\"z\"]", "/rules/1/match",
		  "has \"z\", which is in the match of /rules/0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		char text[256];

		snprintf(text, sizeof(text),
			 "{\"name\":\"zed\",\"match\":{\"comm\":\"z\"}},"
			 "{\"name\":\"list\",\"match\":{\"comm\":%s}}",
			 wrong[i][0]);
		_cleanup_parsed_ struct parsed p = parse_rules(text);

		assert_only_fault(&p, wrong[i][1], wrong[i][2]);
	}
}

/* A long list in each of many rules would be more than the kernel side has room for. */
static void bounds_all_names(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	for (int i = 0; i < 200; i++) {
		fprintf(out, "%s{\"name\":\"r%d\",\"match\":{\"comm\":[", i ? "," : "", i);
		for (int j = 0; j < RULE_COMMS_MAX; j++)
			fprintf(out, "%s\"n%d-%d\"", j ? "," : "", i, j);
		fputs("]}}", out);
	}
	assert_int_equal(fclose(out), 0);
	_cleanup_parsed_ struct parsed p = parse_rules(text);

	assert_only_fault(&p, "/rules/156/match/comm", "10048 names; must have at most 10000");
}

UNIT_TESTS(rules_names)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_list_of_names),
		cmocka_unit_test(refuses_wrong_lists),
		cmocka_unit_test(bounds_all_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
