/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits for a CPU by length. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <json-c/json.h>
#include <string.h>

#include "consumer/evidence/time/queue_histogram.h"
#include "shared/json/jsonw.h"

static void test_sums(void **state)
{
	struct thread_queue queue = { .waits = { [0] = 90, [4] = 9, [QUEUE_BUCKETS - 1] = 1 } };
	struct queue_histogram h = {}, twice = {};

	queue.behind_ns[QUEUE_OTHERS] = 70;
	queue.behind_ns[QUEUE_IDLE] = 7;
	queue_histogram_add(&h, &queue);
	assert_int_equal(queue_histogram_count(&h), 100);
	assert_int_equal(queue_histogram_sum_ns(&h), 77);
	queue_histogram_merge(&twice, &h);
	queue_histogram_merge(&twice, &h);
	assert_int_equal(queue_histogram_count(&twice), 200);
	assert_int_equal(queue_histogram_sum_ns(&twice), 154);
}

/* Steps without waits and parts without time are left out; a bound that is not known is null. */
static void test_written(void **state)
{
	struct queue_histogram h = { .waits = { [1] = 2, [QUEUE_BUCKETS - 1] = 3 } };
	json_object *root, *buckets;
	struct jsonw w;

	h.behind_ns[QUEUE_SIBLINGS] = 5;
	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	queue_histogram_write(&h, &w);
	jsonw_object_end(&w);
	jsonw_string_n(&w, NULL, "", 0);
	assert_int_equal(jsonw_end(&w), 0);
	w.data[w.bytes - 3] = 0;
	root = json_tokener_parse(w.data);
	assert_non_null(root);
	buckets = json_object_object_get(root, "buckets");
	assert_string_equal(json_object_to_json_string_ext(buckets, JSON_C_TO_STRING_PLAIN),
			    "[[1536,2],[null,3]]");
	assert_null(json_object_object_get(root, "p99"));
	assert_int_equal(json_object_get_int64(json_object_object_get(root, "count")), 5);
	assert_string_equal(
		json_object_to_json_string_ext(json_object_object_get(root, "behind_ns"),
					       JSON_C_TO_STRING_PLAIN),
		"{\"siblings\":5}");
	json_object_put(root);
	jsonw_done(&w);
}

UNIT_TESTS(queue_histogram)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
