/* SPDX-License-Identifier: BSD-2-Clause */
/* When the line `health` is written, and over which interval. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <unistd.h>

#include "consumer/telemetry/health.h"
#include "shared/tools/clock.h"

#define MINUTE (60 * NSEC_PER_SEC)

static uint64_t number(json_object *line, const char *key)
{
	json_object *value;

	assert_true(json_object_object_get_ex(line, key, &value));
	return json_object_get_uint64(value);
}

static void dawdle(void *context, uint32_t events)
{
	struct fake *f = context;

	usleep(30000);
	loop_stop(f->a.loop);
}

/* One turn of the loop, of 30 ms. */
static void take_turn(struct fake *f)
{
	struct loop_source *timer;

	assert_int_equal(loop_timer(f->a.loop, dawdle, f, &timer), 0);
	assert_int_equal(loop_timer_set(timer, 1, 0), 0);
	assert_int_equal(loop_run(f->a.loop), 0);
	loop_remove(timer);
}

static void test_once_a_minute(void **state)
{
	struct fake *f = fake_new();
	uint64_t now = clock_mono_ns();

	if (!f)
		skip();
	health_init(&f->a.health, &f->a.telemetry, 60);
	health_check(&f->a.health, now);
	assert_int_equal(f->a.health.said_ns, 0);
	f->a.watches.count = 1;
	health_check(&f->a.health, now);
	health_check(&f->a.health, now + MINUTE - 1);
	assert_int_equal(fake_count(f, "health"), 0);
	health_check(&f->a.health, now + MINUTE);
	assert_int_equal(fake_count(f, "health"), 1);
	health_check(&f->a.health, now + MINUTE + 1);
	assert_int_equal(fake_count(f, "health"), 1);
	f->a.watches.count = 0;
	fake_free(f);
}

/* The longest turn is of the line's own minute: a turn before it does not count. */
static void test_longest_turn(void **state)
{
	struct fake *f = fake_new();
	uint64_t now = clock_mono_ns();
	json_object *line;

	if (!f)
		skip();
	health_init(&f->a.health, &f->a.telemetry, 60);
	f->a.watches.count = 1;
	take_turn(f);
	health_check(&f->a.health, now);
	health_check(&f->a.health, now + MINUTE);
	line = fake_last(f, "health");
	assert_int_equal(number(line, "longest_turn_ms"), 0);
	json_object_put(line);
	take_turn(f);
	health_check(&f->a.health, now + 2 * MINUTE);
	line = fake_last(f, "health");
	assert_true(number(line, "longest_turn_ms") >= 30);
	assert_true(number(line, "longest_turn_own_ms") <= number(line, "longest_turn_ms"));
	json_object_put(line);
	f->a.watches.count = 0;
	fake_free(f);
}

/* The rest of a minute when nothing is watched any more is reported if something was lost. */
static void test_rest_of_a_minute(void **state)
{
	struct fake *f = fake_new();
	uint64_t now = clock_mono_ns();
	json_object *line;

	if (!f)
		skip();
	health_init(&f->a.health, &f->a.telemetry, 60);
	for (int lost = 0; lost < 3; lost++) {
		f->a.watches.count = 1;
		health_check(&f->a.health, now);
		if (lost == 1)
			f->a.health.ticks.lost[DROP_RING_FULL] = 7;
		if (lost == 2)
			f->a.recorder.evicted += 9;
		f->a.watches.count = 0;
		health_check(&f->a.health, now + NSEC_PER_SEC);
		health_check(&f->a.health, now + 2 * NSEC_PER_SEC);
		assert_int_equal(fake_count(f, "health"), lost);
		if (lost) {
			line = fake_last(f, "health");
			assert_int_equal(number(line, "interval_ms"), 1000);
			assert_int_equal(number(json_object_object_get(line, "lost"),
						lost == 1 ? "ring_full" : "held"),
					 lost == 1 ? 7 : 9);
			json_object_put(line);
		}
	}
	fake_free(f);
}

UNIT_TESTS(health)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_a_minute),
		cmocka_unit_test(test_longest_turn),
		cmocka_unit_test(test_rest_of_a_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
