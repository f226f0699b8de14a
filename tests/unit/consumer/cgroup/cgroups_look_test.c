/* SPDX-License-Identifier: BSD-2-Clause */
/* On a tree of directories. */
#include "consumer/cgroup/cgroups_look.h"

#include <time.h>
#include <unistd.h>

#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/cgroups_testing.h"

#define PART_NS (NSEC_PER_MSEC / 2)
#define NOBODY	0x7fffffffffff
#define MANY	1600
#define TREES	40
#define WALKS	5

/* The look goes on in parts; a caller in the meantime does not get "no such cgroup". */
static void test_in_parts(void **state)
{
	uint64_t a = make("/a"), b = make("/a/b");
	unsigned int parts = 0;

	assert_null(cgroups_path(&cgroups, b, 0));
	assert_true(cgroups_look_awaits(&cgroups, b));
	assert_false(cgroups_look_awaits(&cgroups, a));
	for (; cgroups_look_awaits(&cgroups, b); parts++) {
		assert_null(cgroups_path(&cgroups, b, 0));
		assert_true(cgroups_look_step(&cgroups, 0) > 0 || cgroups_knows(&cgroups, b));
	}
	assert_true(parts >= 2);
	assert_string_equal(cgroups_path(&cgroups, b, 0), "/a/b");
	assert_string_equal(cgroups_path(&cgroups, a, 0), "/a");
}

/* What was not found is looked for once, and again after cgroups_look_again. */
static void test_not_found(void **state)
{
	assert_null(look_up(NOBODY));
	assert_null(cgroups_path(&cgroups, NOBODY, 0));
	assert_false(cgroups_look_awaits(&cgroups, NOBODY));
	assert_int_equal(cgroups_look_step(&cgroups, UINT64_MAX), 0);
	cgroups_look_again(&cgroups);
	assert_null(cgroups_path(&cgroups, NOBODY, 0));
	assert_true(cgroups_look_awaits(&cgroups, NOBODY));
}

/*
 * A walk looks for cgroups that were unknown before it began. Whoever comes later waits for the
 * next, which comes some time later, so that ids which are not there make no storm of walks.
 */
static void test_next_walk(void **state)
{
	uint64_t now_ns = clock_mono_ns(), due_ns, late;

	make("/a");
	cgroups_look_for(&cgroups, NOBODY);
	assert_true(cgroups_look_step(&cgroups, 0) > 0);
	late = make("/a/late");
	cgroups_look_for(&cgroups, late + (1ULL << 40));
	for (int i = 0; i < 100 && cgroups_look_awaits(&cgroups, NOBODY); i++)
		cgroups_look_step(&cgroups, 0);
	assert_false(cgroups_look_awaits(&cgroups, NOBODY));
	assert_true(cgroups_look_awaits(&cgroups, late + (1ULL << 40)));
	due_ns = cgroups_look_step(&cgroups, UINT64_MAX);
	assert_true(due_ns >= now_ns + CGROUPS_LOOK_EVERY_NS);
	assert_true(clock_mono_ns() >= due_ns ||
		    cgroups_look_awaits(&cgroups, late + (1ULL << 40)));
	assert_null(look_up(late + (1ULL << 40)));
}

/* An event that reports it ends the wait, and so does one of its end. */
static void test_learned(void **state)
{
	cgroups_look_for(&cgroups, NOBODY);
	cgroups_look_for(&cgroups, NOBODY + 1);
	cgroups_learn(&cgroups, NOBODY, "/told");
	assert_false(cgroups_look_awaits(&cgroups, NOBODY));
	cgroups_forget(&cgroups, NOBODY + 1);
	assert_false(cgroups_look_awaits(&cgroups, NOBODY + 1));
	/* Nobody is left to walk for, and the lines of one that is gone ask for no walk. */
	assert_int_equal(cgroups_look_step(&cgroups, UINT64_MAX), 0);
	assert_null(cgroups_path(&cgroups, NOBODY + 1, 0));
	assert_int_equal(cgroups_look_step(&cgroups, UINT64_MAX), 0);
}

/* A full table forgets those that were not found, and takes no more than it has room for. */
static void test_full(void **state)
{
	for (uint64_t i = 0; i < CGROUPS_LOOK_MAX; i++)
		cgroups_look_gone(&cgroups, NOBODY + i);
	cgroups_look_for(&cgroups, NOBODY - 1);
	assert_true(cgroups_look_awaits(&cgroups, NOBODY - 1));
	for (uint64_t i = 0; i < 2 * CGROUPS_LOOK_MAX; i++)
		cgroups_look_for(&cgroups, (1ULL << 50) + i);
	assert_true(cgroups.look.ids.count <= CGROUPS_LOOK_MAX);
	assert_false(cgroups_look_awaits(&cgroups, (1ULL << 50) + 2 * CGROUPS_LOOK_MAX - 1));
	assert_null(look_up(NOBODY - 1));
}

/* CPU time of this thread: others on the machine must not count. */
static uint64_t thread_ns(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Walks all of the tree in parts. Returns the longest part's time on a CPU. */
static uint64_t walk_in_parts(uint64_t wanted)
{
	uint64_t longest_ns = 0;
	unsigned int parts = 0;

	cgroups_look_for(&cgroups, wanted);
	for (; cgroups_look_awaits(&cgroups, wanted); parts++) {
		uint64_t began_ns = thread_ns();

		cgroups_look_step(&cgroups, clock_mono_ns() + PART_NS);
		longest_ns = MAX(longest_ns, thread_ns() - began_ns);
	}
	assert_true(parts > 5);
	return longest_ns;
}

/*
 * Thousands of cgroups: no part takes much longer than it may. Interrupts count as time of the
 * thread that they hit, so that the best of some walks is the look's own time.
 */
static void test_many(void **state)
{
	uint64_t least_ns = UINT64_MAX, last = 0;
	char name[64];

	for (int i = 0; i < MANY; i++) {
		if (i % (MANY / TREES) == 0)
			snprintf(name, sizeof(name), "/t%d", i);
		else
			snprintf(name, sizeof(name), "/t%d/c%d", i - i % (MANY / TREES), i);
		last = make(name);
	}
	for (uint64_t walk = 0; walk < WALKS; walk++) {
		least_ns = MIN(least_ns, walk_in_parts(NOBODY + walk));
		usleep(CGROUPS_LOOK_EVERY_NS / 1000); /* the next may come then */
	}
	print_message("the longest part took %.2f ms of CPU\n", (double)least_ns / 1e6);
	assert_string_equal(cgroups_path(&cgroups, last, 0), name);
	if (!SANITIZED)
		assert_true(least_ns < 4 * PART_NS);
}

UNIT_TESTS(cgroups_look)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_next_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_learned, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
