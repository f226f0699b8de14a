/* SPDX-License-Identifier: BSD-2-Clause */
/* Which pools had threads to spare when calm, and have none. */
#include "consumer/evidence/waits/pool_places.h"

#include <stdio.h>

#include "consumer/sampling/wait_kind.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/unit_testing.h"

#define MS    NSEC_PER_MSEC
#define LOCK  (WAIT_BLOCKED + WAIT_LOCK)
#define SLEEP (WAIT_BLOCKED + WAIT_SLEEP)

static struct pool_places places;

static void add_of(uint32_t tgid, const char *comm, enum phase phase, const char *fn, uint8_t state,
		   bool idle, bool whole, uint64_t ms)
{
	const struct named_frame frame = { .fn = fn };
	const struct known_wait wait = { .state = state, .idle = idle, .frame = &frame };
	struct stack stack = { .tgid = tgid, .phase = (uint8_t)phase, .weight_ns = ms * MS };

	snprintf(stack.comm, sizeof(stack.comm), "%s", comm);
	pool_places_add(&places, &stack, &wait, whole);
}

static void add(const char *comm, enum phase phase, const char *fn, uint8_t state, uint64_t ms)
{
	add_of(7, comm, phase, fn, state, state == SLEEP, true, ms);
}

/* Both phases last for two seconds. */
static bool found(struct pool_starved *s)
{
	return pool_places_starved(&places, 2000, 2000, s);
}

static void begin(void)
{
	pool_places_done(&places);
	pool_places_init(&places);
	for (int i = 0; i < 3; i++)
		add(i % 2 ? "worker-1" : "worker-12", PHASE_BEFORE, "take_task", LOCK, 1800);
}

/* Three threads waited for tasks, and are asleep in one and the same. */
static void test_starved(void **state)
{
	struct pool_starved s;

	begin();
	for (int i = 0; i < 3; i++)
		add("worker-3", PHASE_DURING, "call_billing", SLEEP, 2000);
	assert_true(found(&s));
	assert_string_equal(s.busy->pool, "worker-");
	assert_string_equal(s.busy->fn, "call_billing");
	assert_string_equal(s.calm->fn, "take_task");
	assert_int_equal(s.threads, 3);
	assert_int_equal(s.busy->tgid, 7);
	assert_int_equal(s.free_ns, 0);
	/* Of another process of that name too: then there is no one number. */
	add_of(8, "worker-9", PHASE_DURING, "call_billing", SLEEP, true, true, 2000);
	assert_true(found(&s));
	assert_int_equal(s.busy->tgid, 0);
	assert_int_equal(s.threads, 4);
	/* Without a calm time the usual state is not known. */
	assert_false(pool_places_starved(&places, 2000, 0, &s));
}

/* A free thread, threads that are in several waits, or one thread alone: nothing is reported. */
static void test_not_starved(void **state)
{
	struct pool_starved s;

	begin();
	for (int i = 0; i < 2; i++)
		add("worker-3", PHASE_DURING, "call_billing", SLEEP, 2000);
	assert_false(found(&s)); /* one ran, or ended */
	add("worker-3", PHASE_DURING, "take_task", LOCK, 2000);
	assert_false(found(&s));
	begin();
	add("worker-3", PHASE_DURING, "call_billing", SLEEP, 2000);
	add("worker-3", PHASE_DURING, "call_shipping", SLEEP, 2000);
	add("worker-3", PHASE_DURING, "call_stock", SLEEP, 2000);
	assert_false(found(&s));
	pool_places_done(&places);
	pool_places_init(&places);
	add("poller", PHASE_BEFORE, "take_task", LOCK, 2000);
	add("poller", PHASE_DURING, "call_billing", SLEEP, 2000);
	assert_false(found(&s));
	/* The loop of a server in an epoll takes new work, with any awaited peer. */
	begin();
	for (int i = 0; i < 3; i++)
		add_of(7, "worker-1", PHASE_DURING, "loop", WAIT_BLOCKED + WAIT_IDLE, true, true,
		       2000);
	assert_false(found(&s));
}

/* Where a stack is not whole the function is not known: that is no other place than before. */
static void test_broken_stacks(void **state)
{
	struct pool_starved s;

	begin();
	for (int i = 0; i < 3; i++)
		add_of(7, "worker-1", PHASE_DURING, "futex", LOCK, false, false, 2000);
	assert_false(found(&s));
	pool_places_done(&places);
	pool_places_init(&places);
	for (int i = 0; i < 3; i++) {
		add_of(7, "worker-1", PHASE_BEFORE, "futex", LOCK, false, false, 2000);
		add("worker-1", PHASE_DURING, "take_task", LOCK, 2000);
	}
	assert_false(found(&s));
}

/* Beyond the limit nothing has a row, and that is counted. */
static void test_limit(void **state)
{
	char fn[POOL_PLACES_MAX + 1][16];

	begin();
	for (int i = 0; i <= POOL_PLACES_MAX; i++) {
		snprintf(fn[i], sizeof(fn[i]), "place_%d", i);
		add("worker-1", PHASE_DURING, fn[i], SLEEP, 1);
	}
	assert_int_equal(places.count, POOL_PLACES_MAX);
	assert_int_equal(places.left_out, 2);
	pool_places_done(&places);
}

UNIT_TESTS(pool_places)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_not_starved),
		cmocka_unit_test(test_broken_stacks),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
