/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/events/parts.h"

static struct store store;
static struct parts parts;

static int setup(void **state)
{
	if (store_init(&store, 8u << 20) < 0)
		return -1;
	store.native = true; /* the frames of these tests are numbers alone */
	return parts_init(&parts, &store.budget);
}

static int teardown(void **state)
{
	parts_done(&parts);
	store_done(&store);
	return 0;
}

static struct json_text text_of(const char *text)
{
	return (struct json_text){ .data = text, .bytes = strlen(text) };
}

/* Takes a part with one frame, with the number of the part. */
static void take(const char *id, uint64_t part, uint64_t n)
{
	struct event event = {
		.type = EVENT_STACK,
		.session = text_of("s"),
		.rule = text_of("r"),
		.signal = text_of("oncpu"),
		.phase = text_of("during"),
		.comm = text_of("c"),
		.stack_id = text_of(id),
		.count = part == 1 ? 2 : 0,
		.weight_ns = part == 1 ? 20 : 0,
		.part = part,
		.parts = n,
	};
	uint32_t session, frame = (uint32_t)part;

	assert_int_equal(store_session(&store, &event, 1, &session), 0);
	assert_int_equal(parts_take(&parts, &store, session, &event, &frame, 1), 0);
}

static void test_one_stack(void **state)
{
	const uint32_t *frames;
	uint32_t n;

	take("1", 1, 3);
	take("2", 1, 2);
	take("1", 2, 3);
	assert_int_equal(parts_lacking(&parts), 2);
	take("1", 3, 3);
	assert_int_equal(parts_lacking(&parts), 1);
	assert_int_equal(store.keys.count, 1);
	assert_int_equal(store.values[0].count, 2);
	frames = store_frames(&store, store_key_get(&store, 0)->stack, &n);
	assert_int_equal(n, 3);
	assert_int_equal(frames[0], 1);
	assert_int_equal(frames[2], 3);
	take("2", 2, 2);
	assert_int_equal(parts_lacking(&parts), 0);
	assert_int_equal(store.values[1].count, 2);
}

static void test_missing(void **state)
{
	take("1", 1, 3);
	take("1", 3, 3); /* the second is missing */
	assert_int_equal(parts_lacking(&parts), 1);
	take("2", 2, 3); /* the first is in another file */
	take("2", 3, 3);
	assert_int_equal(parts_lacking(&parts), 2);
	take("3", 1, 2);
	take("3", 1, 2); /* it begins anew */
	take("3", 2, 2);
	assert_int_equal(store.keys.count, 1);
	take("4", 1, 2);
	take("4", 2, 3); /* of another number of parts */
	assert_int_equal(store.keys.count, 1);
	assert_int_equal(parts_lacking(&parts), 4);
}

/* Stacks with parts that never come take the place of no other one for long. */
static void test_the_oldest_gives_way(void **state)
{
	char id[16];

	take("old", 1, 3);
	take("new", 1, 3);
	for (int i = 0; i < PARTS_OPEN_MAX - 2; i++) {
		snprintf(id, sizeof(id), "%d", i);
		take(id, 1, 2);
	}
	take("old", 2, 3); /* touched: not the oldest any more */
	take("one more", 1, 2);
	take("one more", 2, 2);
	take("old", 3, 3);
	assert_int_equal(store.keys.count, 2);
	take("new", 2, 3);
	take("new", 3, 3);
	assert_int_equal(parts_lacking(&parts), PARTS_OPEN_MAX - 2 + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(parts)
{
	const struct CMUnitTest tests[] = { TEST(one_stack), TEST(missing),
					    TEST(the_oldest_gives_way) };

	return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
