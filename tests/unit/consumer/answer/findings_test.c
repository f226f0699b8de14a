/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of findings: the reported ones, their order, and the rest. */
#include "consumer/answer/findings.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/unit_testing.h"

static void add(struct findings *all, enum finding_cause cause, uint64_t ms, const char *says)
{
	struct finding f = { .cause = cause,
			     .ns = ms * NSEC_PER_MSEC,
			     .evidence = { "lock", "lock", "address", "0x7f\x01", 77 } };

	snprintf(f.says, sizeof(f.says), "%s", says);
	findings_add(all, &f);
}

static json_object *written(struct findings *all)
{
	json_object *object;
	struct jsonw w;

	jsonw_init(&w, 8192);
	jsonw_object(&w, NULL);
	findings_sort(all);
	findings_write(all, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	object = json_tokener_parse(strndupa(w.data, w.bytes));
	assert_non_null(object);
	jsonw_done(&w);
	return object;
}

static json_object *at(json_object *object, size_t i)
{
	return json_object_array_get_idx(json_object_object_get(object, "findings"), i);
}

static const char *get(json_object *object, const char *key)
{
	return json_object_get_string(json_object_object_get(object, key));
}

/* The most time first, of whatever kind; of one cause the larger; little is not reported. */
static void test_order(void **state)
{
	struct findings all = { .time_ns = { 4 * NSEC_PER_SEC, NSEC_PER_SEC } };
	json_object *object;

	add(&all, FINDING_FUNCTION, 900, "f");
	add(&all, FINDING_DISK, 1000, "disk");
	add(&all, FINDING_LOCK_HELD, 500, "small");
	add(&all, FINDING_LOCK_HELD, 2000, "large");
	add(&all, FINDING_LOCK_HELD, 100, "smaller");
	add(&all, FINDING_PEER, 399, "below a tenth");
	add(&all, FINDING_MEMORY_LIMIT, 200, "a twentieth suffices");
	add(&all, FINDING_SYNC, 0, "nothing");
	object = written(&all);
	assert_int_equal(json_object_array_length(json_object_object_get(object, "findings")), 4);
	assert_string_equal(get(at(object, 0), "says"), "large");
	assert_string_equal(get(at(object, 0), "cause"), "lock_held");
	assert_string_equal(get(at(object, 0), "of"), "waiting");
	assert_true(json_object_get_double(json_object_object_get(at(object, 0), "share")) == 0.5);
	assert_string_equal(get(at(object, 1), "says"), "disk");
	assert_string_equal(get(at(object, 2), "of"), "running");
	assert_false(json_object_object_get_ex(at(object, 2), "share", NULL));
	assert_string_equal(get(at(object, 3), "cause"), "memory_limit");
	assert_true(json_object_get_double(json_object_object_get(object, "unexplained")) == 0.2);
	assert_int_equal(json_object_get_int(json_object_object_get(object, "waited_ms")), 4000);
	json_object_put(object);
}

/* The root of the symptom comes first, and what others explain besides is cut to the rest. */
static void test_root(void **state)
{
	struct findings all = { .time_ns = { 4 * NSEC_PER_SEC } };
	json_object *object;

	add(&all, FINDING_LOCK_WAIT, 3600, "more than is left");
	add(&all, FINDING_MEMORY_LIMIT, 1000, "root");
	findings_get(&all, FINDING_MEMORY_LIMIT)->is_root = true;
	add(&all, FINDING_PEER, 500, "nothing is left");
	object = written(&all);
	assert_int_equal(json_object_array_length(json_object_object_get(object, "findings")), 2);
	assert_string_equal(get(at(object, 0), "says"), "root");
	assert_string_equal(get(at(object, 0), "level"), "certain");
	assert_string_equal(get(at(object, 1), "level"), "likely");
	assert_int_equal(json_object_get_int(json_object_object_get(at(object, 1), "explains_ms")),
			 3000);
	assert_int_equal(findings_explained_pct(&all), 100);
	json_object_put(object);
}

/* What the facts alone prove lasts for a part of the session, and has no share of the waits. */
static void test_lasts(void **state)
{
	struct findings all = { .time_ns = { [FINDINGS_SESSION] = 2 * NSEC_PER_SEC } };
	struct finding f = { .cause = FINDING_CPU_QUOTA,
			     .lasts = true,
			     .ns = NSEC_PER_SEC,
			     .says = "quota",
			     .evidence = { .type = "facts" } };
	json_object *object;

	findings_add(&all, &f);
	object = written(&all);
	assert_string_equal(get(at(object, 0), "of"), "session");
	assert_false(json_object_object_get_ex(at(object, 0), "share", NULL));
	json_object_put(object);
}

/* A wait without a culprit comes after all others, unless a chain has one. */
static void test_vague(void **state)
{
	struct findings all = { .time_ns = { 4 * NSEC_PER_SEC, NSEC_PER_SEC, NSEC_PER_SEC } };
	json_object *object;

	add(&all, FINDING_PIPE, 4000, "on a pipe");
	add(&all, FINDING_PROCESS, 2000, "meanwhile it slept");
	all.items[1].chain = 3;
	add(&all, FINDING_ACCEPT_QUEUE, 1000, "full");
	object = written(&all);
	assert_string_equal(get(at(object, 0), "cause"), "process");
	assert_string_equal(get(at(object, 1), "cause"), "accept_queue");
	assert_string_equal(get(at(object, 2), "cause"), "pipe");
	json_object_put(object);
}

/* What more than five explain counts as unexplained, and the shares never exceed the whole. */
static void test_bounds(void **state)
{
	struct findings all = { .time_ns = { 10 * NSEC_PER_SEC } };
	json_object *object;

	for (int i = 0; i < 10; i++)
		add(&all, (enum finding_cause)i, 1000, "tenth");
	object = written(&all);
	assert_int_equal(json_object_array_length(json_object_object_get(object, "findings")),
			 FINDINGS_MAX);
	assert_true(json_object_get_double(json_object_object_get(object, "unexplained")) == 0.5);
	json_object_put(object);

	all = (struct findings){ .time_ns = { NSEC_PER_SEC } };
	add(&all, FINDING_DISK, 5000, "more than there is");
	object = written(&all);
	assert_true(json_object_get_double(json_object_object_get(at(object, 0), "share")) == 1);
	assert_true(json_object_get_double(json_object_object_get(object, "unexplained")) == 0);
	json_object_put(object);

	all = (struct findings){};
	add(&all, FINDING_DISK, 5, "of nothing");
	object = written(&all);
	assert_int_equal(json_object_array_length(json_object_object_get(object, "findings")), 0);
	json_object_put(object);
}

/* In a short line there are fewer, and the left-out ones count as unexplained. */
static void test_room(void **state)
{
	struct findings all = { .time_ns = { 4 * NSEC_PER_SEC } };
	char text[2000];
	struct jsonw w;

	add(&all, FINDING_DISK, 2000, "disk");
	add(&all, FINDING_LOCK_HELD, 1000, "lock");
	add(&all, FINDING_PEER, 1000, "peer");
	jsonw_init(&w, 700);
	jsonw_object(&w, NULL);
	findings_sort(&all);
	findings_write(&all, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	snprintf(text, sizeof(text), "%.*s", (int)w.bytes, w.data);
	assert_non_null(strstr(text, "\"disk\""));
	assert_null(strstr(text, "\"peer\""));
	assert_null(strstr(text, "\"unexplained\":0.0"));
	assert_non_null(strstr(text, "\"findings_more\":"));
	jsonw_done(&w);
}

/* The selector has its own members, and bytes from outside stay JSON. */
static void test_evidence(void **state)
{
	struct findings all = { .time_ns = { NSEC_PER_SEC } };
	json_object *object, *selector;

	add(&all, FINDING_LOCK_HELD, 1000, "\"quoted\" \x1b");
	object = written(&all);
	selector = json_object_array_get_idx(json_object_object_get(at(object, 0), "evidence"), 0);
	assert_string_equal(get(selector, "type"), "lock");
	assert_string_equal(get(selector, "address"), "0x7f\x01");
	assert_int_equal(json_object_get_int(json_object_object_get(selector, "pid")), 77);
	assert_string_equal(get(at(object, 0), "says"), "\"quoted\" \x1b");
	json_object_put(object);
}

UNIT_TESTS(findings)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	 cmocka_unit_test(test_root),
		cmocka_unit_test(test_lasts),	 cmocka_unit_test(test_vague),
		cmocka_unit_test(test_bounds),	 cmocka_unit_test(test_room),
		cmocka_unit_test(test_evidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
