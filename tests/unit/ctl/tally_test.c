/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "ctl/tally.h"
#include "shared/cleanup.h"

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

/* The line's new form; "" for none. It lives until the next call. */
static const char *end(const struct tally *t, size_t max_bytes)
{
	static char text[sizeof(END) + 256];
	const struct event event = { .session = TEXT("s1") };
	_cleanup_(jsonw_done) struct jsonw w;
	int r;

	jsonw_init(&w, sizeof(text) - 1);
	r = tally_end(t, &event, END, sizeof(END) - 1, max_bytes, &w);
	if (r < 0) {
		assert_int_equal(r, -ENOENT);
		return "";
	}
	memcpy(text, w.data, w.bytes);
	text[w.bytes] = '\0';
	return text;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_of_a_module),
		cmocka_unit_test(test_some_of_a_module),
		cmocka_unit_test(test_nothing_changed),
		cmocka_unit_test(test_long_line),
	};

	pool_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
