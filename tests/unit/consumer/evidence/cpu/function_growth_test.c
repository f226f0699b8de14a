/* SPDX-License-Identifier: BSD-2-Clause */
/* Which function's part of the CPU time grew most. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/cpu/function_growth.h"
#include "shared/tools/macro.h"

static struct function_growth growth;
static uint64_t calm_ms, sample_ns;
static struct stack calm = { .user_frames = 3, .phase = PHASE_BEFORE, .comm = "calm" };
static struct stack stalled = { .user_frames = 3, .phase = PHASE_DURING, .comm = "worker" };

static int setup(void **state)
{
	calm_ms = FUNCTION_GROWTH_CALM_MS - 1;
	sample_ns = 1;
	return function_growth_init(&growth);
}

static int teardown(void **state)
{
	function_growth_done(&growth);
	return 0;
}

/* A stack of main, the middle and the leaf, sampled so often. */
static void add(struct stack *stack, const char *leaf, const char *middle, uint32_t samples)
{
	const struct named_frame frames[] = {
		{ .fn = leaf, .module = "/bin/x" },
		{ .fn = middle, .module = "/bin/x" },
		{ .fn = "main", .module = "/bin/x" },
	};

	stack->count = samples;
	stack->weight_ns = samples * sample_ns;
	function_growth_add(&growth, stack, frames, 3);
}

static void expect(const char *fn, unsigned int calm_pct, unsigned int stalled_pct)
{
	struct function_grown grown;

	assert_true(function_growth_find(&growth, calm_ms, 3000, &grown));
	assert_string_equal(grown.fn, fn);
	assert_string_equal(grown.comm, "worker");
	assert_int_equal(grown.calm_pct, calm_pct);
	assert_int_equal(grown.stalled_pct, stalled_pct);
}

/* The one that grew, not the one that is most at all times, nor the loop that calls both. */
static void test_grown(void **state)
{
	add(&calm, "scan", "serve", 60);
	add(&calm, "keys", "serve", 40);
	add(&stalled, "scan", "serve", 55);
	add(&stalled, "keys", "serve", 45);
	expect("keys", 40, 45);
	add(&stalled, "keys", "serve", 100);
	expect("keys", 40, 72);
}

/* A service that runs twice as much: its functions count by CPU time per second, not by share. */
static void test_doubled(void **state)
{
	struct function_grown grown;

	sample_ns = 10 * NSEC_PER_MSEC;
	calm_ms = 3000;
	add(&calm, "slow_path", "serve", 60);
	add(&stalled, "slow_path", "serve", 110);
	assert_false(function_growth_find(&growth, calm_ms, 3000, &grown));
	add(&stalled, "slow_path", "serve", 100);
	expect("slow_path", 20, 70);
}

/* A function that has all of the samples now, and had most of them before: no chance. */
static void test_all(void **state)
{
	struct function_grown grown;

	add(&calm, "slow_path", "serve", 57);
	add(&calm, "parse", "serve", 24);
	add(&stalled, "slow_path", "serve", 150);
	assert_true(function_growth_find(&growth, calm_ms, 3000, &grown));
	assert_false(grown.by_chance);
}

/* Where one calls the other, the called one; where it calls many, the caller. */
static void test_called(void **state)
{
	add(&calm, "idle", "wait", 100);
	add(&stalled, "match", "keys", 99);
	add(&stalled, "free", "keys", 1);
	expect("match", 0, 99);
	add(&stalled, "free", "keys", 99);
	expect("keys", 0, 100);
}

/* A function that calls itself counts once for a stack. */
static void test_recursion(void **state)
{
	add(&calm, "walk", "walk", 50);
	add(&calm, "other", "idle", 50);
	add(&stalled, "walk", "walk", 80);
	add(&stalled, "other", "idle", 20);
	expect("walk", 50, 80);
}

/* Nothing to compare with, nothing that changed; the onset is neither calm nor stalled. */
static void test_nothing(void **state)
{
	struct stack onset = { .user_frames = 3, .phase = PHASE_ONSET };
	struct function_grown grown;

	assert_false(function_growth_find(&growth, calm_ms, 3000, &grown));
	add(&stalled, "keys", "serve", 100);
	add(&calm, "idle", "wait", FUNCTION_GROWTH_SAMPLES - 1);
	add(&onset, "idle", "wait", 1000);
	assert_false(function_growth_find(&growth, calm_ms, 3000, &grown));
	assert_string_equal(function_growth_comm(&growth, "keys", "/bin/x"), "worker");
	assert_null(function_growth_comm(&growth, "idle", "/bin/x"));
	add(&calm, "keys", "serve", 10000);
	assert_false(function_growth_find(&growth, calm_ms, 3000, &grown));
}

/* Few calm samples: what had no CPU when calm and has it now, whatever part of little it was. */
static void test_rate(void **state)
{
	struct function_grown grown;

	sample_ns = 10 * NSEC_PER_MSEC;
	add(&calm, "get", "serve", 3);
	add(&stalled, "get", "serve", 4);
	add(&stalled, "next", "keys", 15);
	add(&stalled, "reply", "keys", 11);
	assert_false(function_growth_find(&growth, calm_ms, 1000, &grown)); /* how calm it was? */
	assert_true(function_growth_find(&growth, 2000, 1000, &grown));
	assert_string_equal(grown.fn, "keys");
	assert_true(grown.by_rate);
	assert_int_equal(grown.share_pct, 86);
	assert_int_equal(grown.stalled_pct, 26);
	assert_int_equal(grown.calm_pct, 0);
	/* With few samples during, nothing is reported. */
	growth.samples[GROWTH_STALLED] = FUNCTION_GROWTH_SAMPLES - 1;
	assert_false(function_growth_find(&growth, 2000, 1000, &grown));
}

/* Two draws from one service differ by as much; with more samples it is no chance. */
static void test_chance(void **state)
{
	struct function_grown grown;

	add(&calm, "get", "serve", 30);
	add(&calm, "set", "serve", 10);
	add(&stalled, "get", "serve", 30);
	add(&stalled, "set", "serve", 20);
	assert_true(function_growth_find(&growth, calm_ms, 3000, &grown));
	assert_string_equal(grown.fn, "set");
	assert_true(grown.by_chance);
	for (int i = 0; i < 50; i++) {
		add(&calm, "get", "serve", 30);
		add(&calm, "set", "serve", 10);
		add(&stalled, "get", "serve", 30);
		add(&stalled, "set", "serve", 20);
	}
	assert_true(function_growth_find(&growth, calm_ms, 3000, &grown));
	assert_false(grown.by_chance);
	assert_int_equal(grown.stalled_pct, 40);
}

/* A calm time without a sample may have been luck: one long enough makes it sure. */
static void test_chance_of_none(void **state)
{
	struct function_grown grown;

	sample_ns = 10 * NSEC_PER_MSEC;
	add(&stalled, "next", "keys", 30);
	assert_true(function_growth_find(&growth, 1000, 3000, &grown));
	assert_int_equal(grown.stalled_pct, 10);
	assert_true(grown.by_chance);
	assert_true(function_growth_find(&growth, 3000, 1000, &grown));
	assert_int_equal(grown.stalled_pct, 30);
	assert_false(grown.by_chance);
}

/* More functions than there are places: those that are known go on counting. */
static void test_full(void **state)
{
	static char names[FUNCTION_GROWTH_ROWS][8];

	add(&calm, "idle", "wait", 100);
	add(&stalled, "keys", "serve", 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		add(&stalled, names[i], "serve", 1);
	}
	assert_int_equal(growth.count, FUNCTION_GROWTH_ROWS / 4 * 3);
	add(&stalled, "keys", "serve", 1000000);
	expect("keys", 0, 99);
}

UNIT_TESTS(function_growth)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_grown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doubled, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_called, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recursion, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rate, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chance, setup, teardown),
		cmocka_unit_test_setup_teardown(test_chance_of_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
