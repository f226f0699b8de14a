/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the threads of one name waited: the heaviest stack that was not idle decides. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>

#include "consumer/evidence/waits/wait_places.h"

#define IDLE   (WAIT_BLOCKED + WAIT_IDLE)
#define LOCK   (WAIT_BLOCKED + WAIT_LOCK)
#define SOCKET (WAIT_BLOCKED + WAIT_SOCKET)

static void add(struct wait_places *p, const char *comm, uint8_t part, uint64_t ns,
		const struct known_wait *wait, enum phase phase)
{
	struct stack stack = { .tgid = 7, .wait = part, .weight_ns = ns, .phase = (uint8_t)phase };

	snprintf(stack.comm, sizeof(stack.comm), "%s", comm);
	wait_places_add(p, &stack, wait);
}

static const struct wait_place *find(const struct wait_places *p, uint32_t tgid, const char *name,
				     uint8_t part)
{
	char comm[COMM_BYTES] = "";

	snprintf(comm, sizeof(comm), "%s", name);
	return wait_places_find(p, tgid, comm, part);
}

static void test_heaviest(void **state)
{
	const struct named_frame idle = { .fn = "accept_next" }, light = { .fn = "take_row" },
				 heavy = { .fn = "take_table" };
	const struct known_wait at_idle = { .state = IDLE, .idle = true, .frame = &idle };
	const struct known_wait at_light = { .state = LOCK, .frame = &light };
	const struct known_wait at_heavy = { .state = LOCK,
					     .frame = &heavy,
					     .callers = { "serve" } };
	const struct wait_place *place;
	struct wait_places p;
	char text[128];

	wait_places_init(&p);
	add(&p, "db", IDLE, 300, &at_idle, PHASE_DURING);
	add(&p, "db", IDLE, 200, &at_heavy, PHASE_DURING);
	add(&p, "db", IDLE, 150, &at_light, PHASE_DURING);
	add(&p, "db", IDLE, 9000, &at_idle, PHASE_BEFORE);
	add(&p, "db", WAIT_FOR_CPU, 9000, &at_idle, PHASE_DURING);
	place = find(&p, 7, "db", IDLE);
	assert_non_null(place);
	assert_int_equal(place->weight_ns, 650);
	assert_false(wait_place_is_idle(place)); /* 300 of 650 */
	assert_int_equal(place->state, LOCK);
	assert_string_equal(place->fn, "take_table");
	assert_true(wait_place_say(place, text, sizeof(text)) > 0);
	assert_string_equal(text, " in take_table (called by serve)");
	add(&p, "db", IDLE, 400, &at_idle, PHASE_DURING);
	assert_true(wait_place_is_idle(find(&p, 7, "db", IDLE)));
	assert_null(find(&p, 7, "db", SOCKET));
	assert_null(find(&p, 8, "db", IDLE));
	assert_null(find(&p, 7, "db2", IDLE));
	assert_null(find(&p, 7, "db", WAIT_FOR_CPU));
	wait_places_done(&p);
}

static void test_condition(void **state)
{
	const struct known_wait condition = { .state = LOCK, .condition = true };
	const struct known_wait lock = { .state = LOCK };
	struct wait_places p;

	wait_places_init(&p);
	add(&p, "pool", LOCK, 300, &condition, PHASE_DURING);
	add(&p, "pool", LOCK, 200, &lock, PHASE_DURING);
	assert_true(wait_place_is_condition(find(&p, 7, "pool", LOCK)));
	add(&p, "pool", LOCK, 200, &lock, PHASE_DURING);
	assert_false(wait_place_is_condition(find(&p, 7, "pool", LOCK)));
	wait_places_done(&p);
}

/* A sentence is cut where its room ends, and never beyond. */
static void test_cut(void **state)
{
	const struct named_frame frame = { .fn = "write_to_the_journal" };
	const struct known_wait wait = { .state = LOCK,
					 .frame = &frame,
					 .callers = { "a", "b", "c" } };
	struct wait_places p;
	char text[64];

	wait_places_init(&p);
	add(&p, "x", LOCK, 300, &wait, PHASE_DURING);
	for (size_t space = 1; space < sizeof(text); space++) {
		memset(text, '!', sizeof(text));
		assert_true(wait_place_say(find(&p, 7, "x", LOCK), text, space) < (int)space);
		assert_int_equal(text[space], '!');
		assert_true(strlen(text) < space);
	}
	wait_places_done(&p);
}

static void test_full(void **state)
{
	const struct known_wait wait = { .state = LOCK };
	struct wait_places p;
	char comm[COMM_BYTES];

	wait_places_init(&p);
	for (int i = 0; i < WAIT_PLACES_MAX + 10; i++) {
		snprintf(comm, sizeof(comm), "t%d", i);
		add(&p, comm, LOCK, 1, &wait, PHASE_DURING);
	}
	assert_int_equal(p.count, WAIT_PLACES_MAX);
	assert_int_equal(p.left_out, 10);
	wait_places_done(&p);
}

UNIT_TESTS(wait_places)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heaviest),
		cmocka_unit_test(test_condition),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
