/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU time of a collector. */
#include "consumer/evidence/cpu/garbage.h"

#include <stdio.h>

#include "tests/unit/consumer/testing/unit_testing.h"

static struct garbage g;

static void add(const char *comm, enum phase phase, const char *leaf, const char *caller)
{
	const struct named_frame frames[] = { { .fn = leaf }, { .fn = caller }, { .fn = NULL } };
	struct stack stack = { .user_frames = 3, .count = 1, .phase = phase, .weight_ns = 10 };

	snprintf(stack.comm, sizeof(stack.comm), "%s", comm);
	garbage_add(&g, &stack, frames, 3);
}

/* Wherever in a stack the collector's function is, once for each stack; or by the thread. */
static void test_stacks(void **state)
{
	const char *runtime;

	g = (struct garbage){};
	add("app", PHASE_DURING, "mark", "runtime.gcBgMarkWorker.func2");
	add("app", PHASE_DURING, "runtime.gcAssistAlloc1", "runtime.gcBgMarkWorker");
	add("app", PHASE_BEFORE, "runtime.bgsweep", NULL);
	add("app", PHASE_DURING, "main.work", "main.main");
	assert_int_equal(garbage_ns(&g, PHASE_DURING), 20);
	assert_int_equal(garbage_ns(&g, PHASE_BEFORE), 10);
	assert_string_equal(garbage_most(&g, &runtime), "runtime.gcBgMarkWorker");
	assert_string_equal(runtime, "Go");
	for (int i = 0; i < 5; i++)
		add("GC Thread#12", PHASE_DURING, NULL, NULL);
	add("My GC Thread#1", PHASE_DURING, NULL, NULL);
	assert_int_equal(garbage_ns(&g, PHASE_DURING), 70);
	assert_string_equal(garbage_most(&g, &runtime), "GC Thread#");
	assert_string_equal(runtime, "the JVM");
}

UNIT_TESTS(garbage)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_stacks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
