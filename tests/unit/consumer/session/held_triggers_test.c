/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <string.h>

#include "consumer/session/held_triggers.h"
#include "shared/json/jsonw.h"

static struct trigger_reason stall(enum resource resource, uint64_t from_ms, uint64_t to_ms)
{
	return (struct trigger_reason){
		.kind = TRIGGER_PRESSURE,
		.when.resource = resource,
		.stall_ms = to_ms - from_ms,
		.before.some.total_us = from_ms * 1000,
		.now.some.total_us = to_ms * 1000,
	};
}

static void add(struct held_triggers *h, uint64_t from_ms, uint64_t to_ms)
{
	const struct trigger_reason reason = stall(RESOURCE_IO, from_ms, to_ms);

	held_triggers_add(h, &reason);
}

/* A scan reads windows that overlap: each moment of stall counts once, also over a reset. */
static void test_sum(void **state)
{
	struct held_triggers h = {};

	add(&h, 1000, 1300);
	add(&h, 1100, 1400);
	add(&h, 1200, 1350);
	assert_int_equal(h.count, 3);
	assert_int_equal(h.sum_us, 400000);
	assert_int_equal(h.largest_ms, 300);
	add(&h, 5000, 5050);
	assert_int_equal(h.sum_us, 450000);
	held_triggers_reset(&h);
	add(&h, 5000, 5060);
	assert_int_equal(h.count, 1);
	assert_int_equal(h.sum_us, 10000);
	assert_int_equal(h.largest_ms, 60);
}

static void expect(const struct held_triggers held[CAUSE_COUNT_], const char *right)
{
	struct jsonw w;

	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	held_triggers_write(held, &w, "held");
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_int_equal(w.bytes, strlen(right));
	assert_memory_equal(w.data, right, w.bytes);
	jsonw_done(&w);
}

/* One object for each cause, the stalls where there are any; no key where nothing was held. */
static void test_write(void **state)
{
	const struct trigger_reason exec = { .kind = TRIGGER_EXEC };
	const struct trigger_reason quiet = { .kind = TRIGGER_QUIET };
	struct held_triggers held[CAUSE_COUNT_] = {};

	expect(held, "{}");
	held_triggers_add(&held[CAUSE_EXEC], &exec);
	held_triggers_add(&held[CAUSE_QUIET], &quiet);
	add(&held[CAUSE_IO], 0, 12);
	expect(held, "{\"held\":[{\"trigger\":\"pressure\",\"resource\":\"io\",\"triggers\":1,"
		     "\"largest_ms\":12,\"sum_ms\":12},{\"trigger\":\"exec\",\"triggers\":1},"
		     "{\"trigger\":\"quiet\",\"triggers\":1}]}");
}

UNIT_TESTS(held_triggers)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
