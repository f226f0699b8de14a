/* SPDX-License-Identifier: BSD-2-Clause */
/* All rows, asked of the kernel that the test runs on. */
#include "tests/unit/runner/unit.h"
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "loader/preflight/preflight.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

static void rows_are_whole(void **state)
{
	struct preflight p;

	preflight_probe(&p);
	for (size_t i = 0; i < PREFLIGHT_COUNT_; i++) {
		assert_true(strlen(p.rows[i].name) > 0);
		assert_true(strlen(p.rows[i].lost) > 0);
		assert_true(strlen(p.rows[i].how) > 0);
	}
	assert_int_equal(p.rows[PREFLIGHT_btf].state, PREFLIGHT_PRESENT);
	p.rows[PREFLIGHT_landlock].state = PREFLIGHT_MISSING;
	p.rows[PREFLIGHT_psi].state = PREFLIGHT_UNKNOWN;
	assert_false(preflight_fine(&p));
}

/* A row that is asked for alone has the same text as among all of them. */
static void rows_alone(void **state)
{
	static const enum preflight_id alone[] = { PREFLIGHT_btf, PREFLIGHT_cgroup2, PREFLIGHT_psi,
						   PREFLIGHT_lockdown, PREFLIGHT_vma_open_coded };
	struct preflight_btf btf = { 0 };
	struct preflight_row row;
	struct preflight p;

	preflight_probe(&p);
	for (size_t i = 0; i < ARRAY_SIZE(alone); i++) {
		preflight_ask(&btf, alone[i], &row);
		assert_int_equal(row.state, p.rows[alone[i]].state);
		assert_string_equal(row.detail, p.rows[alone[i]].detail);
	}
	preflight_btf_done(&btf);
}

static void json_is_json(void **state)
{
	struct preflight p;
	json_object *o, *needs = NULL;
	struct jsonw w;
	char *text;

	preflight_probe(&p);
	jsonw_init(&w, 1 << 16);
	preflight_write(&p, &w, NULL);
	assert_int_equal(jsonw_end(&w), 0);
	text = calloc(1, w.bytes + 1); /* the writer's text has no NUL */
	assert_non_null(text);
	memcpy(text, w.data, w.bytes);
	o = json_tokener_parse(text);
	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "needs", &needs));
	assert_int_equal(json_object_array_length(needs), PREFLIGHT_COUNT_);
	json_object_put(o);
	free(text);
	jsonw_done(&w);
}

UNIT_TESTS(preflight)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(rows_alone),
		cmocka_unit_test(json_is_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
