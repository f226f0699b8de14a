/* SPDX-License-Identifier: BSD-2-Clause */
/* What rules have from `defaults`; rules_parse_test.c is about their own keys. */
#include "tests/unit/shared/rules/rules_testing.h"

/* A rule's own keys replace `defaults`, whole for `when`, key by key for capture and labels. */
static void rules_inherit(void **state)
{
	static const char rules[] =
		"\"rules\":[{\"name\":\"all\",\"match\":{\"comm\":\"a\"}},"
		"{\"name\":\"some\",\"match\":{\"comm\":\"b\"},\"when\":[{\"pressure\":\"io\","
		"\"some_ms\":7}],\"capture\":{\"during_ms\":200,\"signals\":[\"auto\"]},\"labels\":{"
		"\"team\":\"y\",\"own\":\"z\"}},"
		"{\"name\":\"none\",\"match\":{\"comm\":\"c\"},\"when\":[],\"labels\":{}}]";
	static const char defaults[] =
		"\"defaults\":{\"when\":[{\"quiet_pct\":10},{\"quiet_pct\":5,\"window_ms\":9000}],"
		"\"capture\":{\"during_ms\":100,\"scope\":\"process\",\"signals\":[\"oncpu\"]},"
		"\"labels\":{\"tier\":\"edge\",\"team\":\"x\"}}";

	for (int turn = 0; turn < 2; turn++) {
		_cleanup_parsed_ struct parsed p = { 0 };
		const struct rule *r;
		char text[2048];

		snprintf(text, sizeof(text), "{\"version\":1,%s,%s}", turn ? rules : defaults,
			 turn ? defaults : rules);
		p = parse(text);
		assert_good(&p);
		assert_int_equal(p.warnings.count, 0);
		r = p.rules->rules;
		assert_int_equal(r[0].n_when, 2);
		assert_int_equal(r[0].pre_ms, RULES_PRE_CALM_MS + 9000);
		assert_true(r[0].scope_process && !r[0].signals_auto && r[0].during_ms == 100);
		assert_int_equal(r[0].signals, 1u << SIGNAL_ONCPU);
		assert_int_equal(r[0].n_labels, 2);
		assert_int_equal(r[1].n_when, 1);
		assert_int_equal(r[1].when[0].stall_ms, 7);
		assert_int_equal(r[1].pre_ms, RULES_PRE_CALM_MS + 2000);
		assert_true(r[1].scope_process && r[1].signals_auto && r[1].during_ms == 200);
		assert_int_equal(r[1].n_labels, 3);
		assert_string_equal(r[1].labels[0].value, "edge");
		assert_string_equal(r[1].labels[1].value, "y");
		assert_string_equal(r[1].labels[2].key, "own");
		assert_int_equal(r[2].n_when, 0);
		assert_int_equal(r[2].n_labels, 2);
	}
}

/* The limits of a rule hold for its own and inherited keys together. */
static void inherited_labels_count(void **state)
{
	_cleanup_parsed_ struct parsed p = { 0 };
	char text[4096];
	size_t n = (size_t)sprintf(text, "{\"version\":1,\"defaults\":{\"labels\":{");

	for (int i = 0; i < RULE_LABELS_MAX; i++)
		n += (size_t)sprintf(text + n, "%s\"%c\":\"x\"", i ? "," : "", 'a' + i);
	sprintf(text + n,
		"}},\"rules\":[{\"name\":\"a\",\"match\":{\"comm\":\"x\"},\"labels\":{\"a\":\"y\"}},"
		"{\"name\":\"b\",\"match\":{\"comm\":\"y\"},\"labels\":{\"z\":\"y\"}}]}");
	p = parse(text);
	assert_only_fault(&p, "/rules/1/labels", "has 17 labels with those of /defaults/labels");
}

/* A doubt in `defaults` is reported for each rule that inherits it. */
static void inherited_signals_are_judged(void **state)
{
	_cleanup_parsed_ struct parsed p = parse(
		"{\"version\":1,\"defaults\":{\"when\":[{\"quiet_pct\":10}],\"capture\":{"
		"\"signals\":[\"fault\"]}},\"rules\":[{\"name\":\"a\",\"match\":{\"comm\":\"x\"}},"
		"{\"name\":\"b\",\"match\":{\"comm\":\"y\"},\"capture\":{\"signals\":[\"auto\"]}}]}");

	assert_good(&p);
	assert_int_equal(p.warnings.count, 1);
	assert_string_equal(p.warnings.items[0].pointer, "/rules/0");
	assert_non_null(strstr(p.warnings.items[0].message, "/defaults/capture/signals"));
}

UNIT_TESTS(rules_rule)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_inherit),
		cmocka_unit_test(inherited_labels_count),
		cmocka_unit_test(inherited_signals_are_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
