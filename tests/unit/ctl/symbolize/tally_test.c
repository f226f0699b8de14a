/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/symbolize/tally.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define TEXT(words)                             \
	{                                       \
		words, sizeof(words) - 1, false \
	}
#define END                                                                                      \
	"{\"v\":1,\"type\":\"session.end\",\"ts\":\"2026-11-21T15:59:01Z\",\"session\":\"s1\","  \
	"\"lost_share\":0.100,\"modules_unnamed\":[{\"module\":\"/b/app\",\"frames\":10,"        \
	"\"why\":\"no_permission\"},{\"module\":\"/l/libx.so.1\",\"frames\":6,\"why\":"          \
	"\"stripped\"}],\"stack_quality\":{\"complete\":1,\"unnamed_share\":0.500},\"advice\":[" \
	"\"app: the agent's user may not read the file\",\"apple has no symbols: x\","           \
	"\"libx.so.1 was built without frame pointers and without symbols: install libx1\"]}"

static const struct event_frame app = { .module = TEXT("/b/app"), .why = TEXT("no_permission") };
static const struct event_frame lib = {
	.module = { "\\/l\\/libx.so.1", 14, true },
	.why = TEXT("stripped"),
};

/* What becomes of a line; "" for none. It lives until the next call. */
static const char *rewrite(const struct tally *t, const char *line, size_t max_bytes)
{
	static char text[sizeof(END) + 256];
	const struct event event = { .session = TEXT("s1") };
	_cleanup_(jsonw_done) struct jsonw w;
	int r;

	jsonw_init(&w, sizeof(text) - 1);
	r = tally_end(t, &event, line, strlen(line), max_bytes, &w);
	if (r < 0) {
		assert_int_equal(r, -ENOENT);
		return "";
	}
	memcpy(text, w.data, w.bytes);
	text[w.bytes] = '\0';
	return text;
}

static const char *end(const struct tally *t, size_t max_bytes)
{
	return rewrite(t, END, max_bytes);
}

static void test_all_of_a_module(void **state)
{
	_cleanup_(tally_done) struct tally t;
	const char *text;

	tally_init(&t);
	assert_int_equal(tally_add(&t, "s1", 2, &app, 10, true), 0);
	assert_int_equal(tally_add(&t, "s1", 2, &lib, 6, false), 0);
	assert_int_equal(tally_add(&t, "s2", 2, &app, 99, false), 0);
	text = end(&t, 8096);
	assert_null(strstr(text, "/b/app"));
	assert_null(strstr(text, "app: the agent"));
	assert_non_null(strstr(text, "apple has no symbols")); /* another program */
	assert_non_null(strstr(text, "install libx1"));
	assert_non_null(strstr(text, "\"frames\":6"));
	assert_non_null(strstr(text, "\"unnamed_share\":0.188")); /* 6 of 16 of a half */
	assert_non_null(strstr(text, "\"lost_share\":0.100"));
	assert_non_null(strstr(text, "\"symbolized\":{\"named\":10,\"unnamed\":6}"));
}

static void test_some_of_a_module(void **state)
{
	_cleanup_(tally_done) struct tally t;
	const char *text;

	tally_init(&t);
	assert_int_equal(tally_add(&t, "s1", 2, &app, 7, true), 0);
	assert_int_equal(tally_add(&t, "s1", 2, &app, 3, false), 0);
	assert_int_equal(tally_add(&t, "s1", 2, &lib, 6, true), 0);
	text = end(&t, 8096);
	assert_non_null(strstr(text, "{\"module\":\"/b/app\",\"frames\":3,\"why\":\"no_perm"));
	assert_non_null(strstr(text, "app: the agent"));
	assert_null(strstr(text, "/l/libx"));
	assert_non_null(strstr(text, "stacks end in libx.so.1, which was built without frame "
				     "pointers: -fno-omit-frame-pointer keeps them"));
}

static void test_nothing_changed(void **state)
{
	_cleanup_(tally_done) struct tally t;

	tally_init(&t);
	assert_string_equal(end(&t, 8096), "");
	assert_int_equal(tally_add(&t, "s1", 2, &app, 10, false), 0);
	assert_string_equal(end(&t, 8096), "");
}

/* A line that was as long as it may be stays so. */
static void test_long_line(void **state)
{
	_cleanup_(tally_done) struct tally t;

	tally_init(&t);
	assert_int_equal(tally_add(&t, "s1", 2, &app, 10, true), 0);
	assert_null(strstr(end(&t, 100), "symbolized"));
	assert_non_null(strstr(end(&t, 100), "unnamed_share\":0.000"));
}

/* A share that is none stays as it came: infinity and NaN are no JSON. */
static void test_no_share(void **state)
{
	static const char *const values[] = { "1e999",	 "-1",	 "1.5",	 "\"inf\"",
					      "\"nan\"", "null", "[0.5]" };
	_cleanup_(tally_done) struct tally t;

	tally_init(&t);
	assert_int_equal(tally_add(&t, "s1", 2, &app, 10, true), 0);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		char line[128], want[128];

		snprintf(line, sizeof(line), "{\"stack_quality\":{\"unnamed_share\":%s}}",
			 values[i]);
		snprintf(want, sizeof(want),
			 "{\"stack_quality\":{\"unnamed_share\":%s},"
			 "\"symbolized\":{\"named\":10,\"unnamed\":0}}",
			 values[i]);
		assert_string_equal(rewrite(&t, line, 8096), want);
	}
}

/* Rows that are no objects stay, even when frames without a module got names. */
static void test_odd_rows(void **state)
{
	static const char line[] = "{\"modules_unnamed\":[1,\"a\",null,[],{}]}";
	const struct event_frame none = { 0 };
	_cleanup_(tally_done) struct tally t;

	tally_init(&t);
	assert_int_equal(tally_add(&t, "s1", 2, &none, 3, true), 0);
	assert_string_equal(rewrite(&t, line, 8096), "{\"modules_unnamed\":[1,\"a\",null,[]],"
						     "\"symbolized\":{\"named\":3,\"unnamed\":0}}");
	assert_int_equal(tally_add(&t, "s1", 2, &none, 2, false), 0);
	assert_string_equal(rewrite(&t, line, 8096),
			    "{\"modules_unnamed\":[1,\"a\",null,[],{\"frames\":2}],"
			    "\"symbolized\":{\"named\":3,\"unnamed\":2}}");
}

UNIT_TESTS(tally)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_a_module), cmocka_unit_test(test_some_of_a_module),
		cmocka_unit_test(test_nothing_changed), cmocka_unit_test(test_long_line),
		cmocka_unit_test(test_no_share),	cmocka_unit_test(test_odd_rows),
	};

	pool_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
