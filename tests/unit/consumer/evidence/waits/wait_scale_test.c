/* SPDX-License-Identifier: BSD-2-Clause */
/* What the stacks of waits weigh after the exact times of their pools were applied. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <stdio.h>

#include "consumer/evidence/waits/wait_scale.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/macro.h"

#define MS     NSEC_PER_MSEC
#define DURING (1000 * MS)
#define LOCK   (WAIT_BLOCKED + WAIT_LOCK)
#define SOCKET (WAIT_BLOCKED + WAIT_SOCKET)

static struct stack_table stacks;
static struct thread_pool pool[2];
static struct thread_pools pools;
static struct wait_scale scale;

static int setup(void **state)
{
	stack_table_init(&stacks, NULL);
	memset(pool, 0, sizeof(pool));
	pool[0] = (struct thread_pool){ .tgid = 100, .start_ns = 77, .name = "work-" };
	pools = (struct thread_pools){ .items = pool, .count = 2 };
	return 0;
}

static int teardown(void **state)
{
	stack_table_done(&stacks);
	return 0;
}

static struct stack *add(const char *comm, uint8_t wait, uint16_t frames, uint64_t looks,
			 uint64_t ms)
{
	struct stack_sample *h = new_stack_sample(frames, 0, NULL);
	struct stack *stack;

	snprintf(h->comm, sizeof(h->comm), "%s", comm);
	h->wait = wait;
	assert_int_equal(stack_table_put(&stacks, h, PHASE_DURING, ms * MS, NULL, &stack), 0);
	stack->count = looks;
	free(h);
	return stack;
}

static int apply(void)
{
	return wait_scale_apply(&stacks, &pools, DURING, &scale);
}

/* The stacks of one pool and kind share out its time as their looks do; other kinds have theirs. */
static void test_shares(void **state)
{
	struct stack *a = add("work-1", LOCK, 3, 15, 600), *b = add("work-22", LOCK, 4, 5, 200);
	struct stack *c = add("work-1", SOCKET, 5, 20, 100);

	pool[0].part_ns[LOCK] = 400 * MS;
	pool[0].part_ns[SOCKET] = 150 * MS;
	pool[0].part_ns[WAIT_FOR_CPU] = 40 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(a->weight_ns, 300 * MS);
	assert_int_equal(b->weight_ns, 100 * MS);
	assert_int_equal(c->weight_ns, 150 * MS);
	assert_int_equal(scale.groups, 2);
	assert_int_equal(scale.looked_ns, 900 * MS);
	assert_int_equal(scale.exact_ns, 550 * MS);
	assert_int_equal(scale.least_ppm, 500000);
	assert_int_equal(scale.most_ppm, 1500000);
	assert_int_equal(scale.unseen_ns, 40 * MS);
}

/* What has no pool of its own is scaled with all others of that kind. */
static void test_others(void **state)
{
	struct stack *a = add("timer", LOCK, 3, 10, 100), *b = add("writer", LOCK, 3, 10, 100);

	pool[1].part_ns[LOCK] = 100 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(a->weight_ns, 50 * MS);
	assert_int_equal(b->weight_ns, 50 * MS);
	pools.count = 1;
	assert_int_equal(apply(), 0);
	assert_int_equal(a->weight_ns, 50 * MS);
	assert_int_equal(scale.groups + scale.left, 0);
}

/* Few looks, or a factor that chance does not make, change nothing, and are reported. */
static void test_left(void **state)
{
	struct stack *few = add("work-1", LOCK, 3, WAIT_SCALE_LOOKS - 1, 100);
	struct stack *far = add("work-1", SOCKET, 3, 100, 100);
	struct stack *none = add("work-1", WAIT_FOR_CPU, 3, 100, 50);

	pool[0].part_ns[LOCK] = 130 * MS;
	pool[0].part_ns[SOCKET] = 201 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(few->weight_ns, 100 * MS);
	assert_int_equal(far->weight_ns, 100 * MS);
	assert_int_equal(none->weight_ns, 50 * MS);
	assert_int_equal(scale.groups, 0);
	assert_int_equal(scale.left, 3);
	assert_int_equal(scale.left_ns, 250 * MS);
	assert_int_equal(scale.left_exact_ns, 331 * MS);
}

/*
 * What waits for a CPU does so by both, so the exact time holds: a reader displaces the thread that
 * it looks at.
 */
static void test_for_cpu(void **state)
{
	struct stack *one = add("work-1", WAIT_FOR_CPU, 3, 60, 3000);
	struct stack *few = add("timer", WAIT_FOR_CPU, 3, 3, 150);

	pool[0].part_ns[WAIT_FOR_CPU] = 160 * MS;
	pool[1].part_ns[WAIT_FOR_CPU] = 20 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(one->weight_ns, 160 * MS);
	assert_int_equal(few->weight_ns, 20 * MS);
	assert_int_equal(scale.left, 0);
	/* Few looks do not show which stacks a longer time belongs to. */
	pool[0].part_ns[WAIT_FOR_CPU] = 960 * MS;
	pool[1].part_ns[WAIT_FOR_CPU] = 900 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(one->weight_ns, 960 * MS);
	assert_int_equal(few->weight_ns, 20 * MS);
	assert_int_equal(scale.left, 1);
}

/* One long wait of two looks is scaled too: both know how long it was. */
static void test_one_wait(void **state)
{
	struct stack *one = add("work-1", LOCK, 3, 2, 1000);

	pool[0].part_ns[LOCK] = 995 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(one->weight_ns, 995 * MS);
	assert_int_equal(scale.left, 0);
}

/* Accounts that began late are a share of the time since, until it is less than half. */
static void test_late(void **state)
{
	struct stack *one = add("work-1", LOCK, 3, 20, 1000);

	pools.late_ns = 200 * MS;
	pool[0].part_ns[LOCK] = 800 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(one->weight_ns, 1000 * MS);
	pools.late_ns = 500 * MS;
	assert_int_equal(apply(), -ENODATA);
	assert_int_equal(one->weight_ns, 1000 * MS);
}

/* The phases before the trigger have no account. */
static void test_phases(void **state)
{
	struct stack *one = add("work-1", LOCK, 3, 20, 1000);

	one->phase = PHASE_ONSET;
	pool[0].part_ns[LOCK] = 800 * MS;
	assert_int_equal(apply(), 0);
	assert_int_equal(one->weight_ns, 1000 * MS);
}

UNIT_TESTS(wait_scale)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_for_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shares, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_phases, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
