/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>

#include "consumer/sampling/stack_table.h"
#include "shared/tools/macro.h"

static struct module module_a, module_b, exe;

static struct stack_table *new_stacks(void)
{
	struct stack_table *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	stack_table_init(s, NULL);
	return s;
}

static void free_stacks(struct stack_table *s)
{
	stack_table_done(s);
	free(s);
}

static void test_same(void **state)
{
	struct stack_sample *h = new_stack_sample(2, 3, &module_a);
	struct stack_table *s = new_stacks();

	for (uint32_t i = 0; i < 10; i++) {
		h->time_ns = i;
		h->seq = i;
		h->cpu = i % 2;
		assert_int_equal(stack_table_add(s, h, PHASE_DURING, 7, i ? &exe : NULL), 0);
	}
	assert_int_equal(s->count, 1);
	assert_int_equal(s->items[0]->count, 10);
	assert_int_equal(s->items[0]->weight_ns, 70);
	assert_int_equal(s->items[0]->threads, 1);
	assert_ptr_equal(s->items[0]->exe, &exe);
	assert_int_equal(s->items[0]->kernel_frames, 2);
	assert_memory_equal(s->items[0]->frames, h->frames, 5 * sizeof(struct frame));
	assert_string_equal(s->items[0]->comm, "work");
	free_stacks(s);
	free(h);
}

/* Any difference between two samples makes a stack of its own. */
static void test_different(void **state)
{
	struct stack_sample *h = new_stack_sample(2, 3, &module_a);
	struct stack_table *s = new_stacks();
	size_t wanted = 1;

	assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0);
#define DIFFERENT(change, back)                                                    \
	do {                                                                       \
		change;                                                            \
		assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0); \
		assert_int_equal(s->count, ++wanted);                              \
		back;                                                              \
	} while (0)
	DIFFERENT(h->tgid = 101, h->tgid = 100);
	DIFFERENT(h->start_ns = 78, h->start_ns = 77);
	DIFFERENT(strcpy(h->comm, "working"),
		  (memset(h->comm, 0, COMM_BYTES), strcpy(h->comm, "work")));
	DIFFERENT(h->frames[0].offset++, h->frames[0].offset--);
	DIFFERENT(h->frames[4].offset++, h->frames[4].offset--);
	DIFFERENT(h->frames[4].module = &module_b, h->frames[4].module = &module_a);
	DIFFERENT(h->user_frames = 2, h->user_frames = 3);
	/* The same five frames, of which one more is the kernel's. */
	DIFFERENT((h->kernel_frames = 3, h->user_frames = 2),
		  (h->kernel_frames = 2, h->user_frames = 3));
	DIFFERENT(h->flags = SAMPLE_KTHREAD, h->flags = 0);
	DIFFERENT(h->flags = STACK_SAMPLE_CUT, h->flags = 0);
	DIFFERENT(h->cgroup_id = 9, h->cgroup_id = 0);
	DIFFERENT(h->flags = SAMPLE_IN_USER, h->flags = 0);
	DIFFERENT(h->flags = SAMPLE_MEMORY_STALL, h->flags = 0);
	DIFFERENT(h->call = 1, h->call = 0);
	/* Of one that woke others, the lock; for others the member has no meaning. */
	DIFFERENT((h->flags = SAMPLE_WAKER, h->lock.tgid = 7), h->flags = 0);
	DIFFERENT((h->flags = SAMPLE_WAKER, h->lock.address = 0x1000), h->flags = 0);
#undef DIFFERENT
	assert_int_equal(stack_table_add(s, h, PHASE_BEFORE, 1, NULL), 0);
	assert_int_equal(s->count, ++wanted);
	/* What does not: the rate, and how its frames came. */
	h->flags = SAMPLE_CAPTURE | SAMPLE_BUILD_ID;
	assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0);
	assert_int_equal(s->count, wanted);
	assert_int_equal(s->items[0]->count, 2);
	free_stacks(s);
	free(h);
}

static void test_threads(void **state)
{
	struct stack_sample *h = new_stack_sample(0, 1, &module_a);
	struct stack_table *s = new_stacks();

	for (uint32_t i = 0; i < 300; i++) {
		h->tid = 100 + i % 30;
		assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0);
	}
	h->frames[0].offset = 1;
	assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0);
	assert_int_equal(s->items[0]->threads, 30);
	assert_int_equal(s->items[1]->threads, 1);
	free_stacks(s);
	free(h);
}

/* At the bound new stacks are refused, known ones go on. */
static void test_bound_count(void **state)
{
	struct stack_sample *h = new_stack_sample(0, 1, &module_a);
	struct stack_table *s = new_stacks();

	for (uint32_t i = 0; i < STACK_TABLE_MAX; i++) {
		h->frames[0].offset = i;
		assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0);
	}
	assert_int_equal(s->count, STACK_TABLE_MAX);
	h->frames[0].offset = STACK_TABLE_MAX;
	assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), -ENOSPC);
	h->frames[0].offset = 5;
	assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0);
	assert_int_equal(s->items[5]->count, 2);
	assert_int_equal(s->count, STACK_TABLE_MAX);
	free_stacks(s);
	free(h);
}

static void test_bound_bytes(void **state)
{
	struct stack_sample *h = new_stack_sample(STACK_FRAMES, STACK_FRAMES, &module_a);
	struct stack_table *s = new_stacks();
	uint32_t i = 0;
	int r;

	do {
		h->frames[0].offset = i++;
		r = stack_table_add(s, h, PHASE_DURING, 1, NULL);
		assert_true(s->bytes <= STACK_TABLE_BYTES_MAX);
	} while (r == 0);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(s->count, i - 1);
	assert_true(s->count < STACK_TABLE_MAX);
	/* A short one may still fit. */
	h->kernel_frames = h->user_frames = 0;
	assert_int_equal(stack_table_add(s, h, PHASE_DURING, 1, NULL), 0);
	free_stacks(s);
	free(h);
}

/* Adds new stacks until one is refused; returns how many there are. */
static size_t fill(struct stack_table *s)
{
	struct stack_sample *h = new_stack_sample(0, 50, &module_a);
	int r = 0;

	for (uint32_t i = 0; r == 0; i++) {
		h->frames[0].offset = i;
		r = stack_table_add(s, h, PHASE_DURING, 1, NULL);
	}
	assert_int_equal(r, -ENOSPC);
	free(h);
	return s->count;
}

/*
 * All tables together stay within the budget, with their indexes and counters. Each leaves
 * something to the next; what is freed can be taken again.
 */
static void test_budget_of_all(void **state)
{
	struct stack_budget budget = { .max_bytes = 4u << 20 };
	struct stack_table tables[6];
	size_t first = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		size_t count;

		stack_table_init(&tables[i], &budget);
		count = fill(&tables[i]);
		assert_true(count > 0);
		first = i ? first : count;
		assert_true(budget.used_bytes >= tables[i].bytes);
		assert_true(budget.used_bytes <= budget.max_bytes);
	}
	assert_true(tables[0].bytes <= budget.max_bytes / 2);
	assert_true(tables[1].count < first);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		stack_table_done(&tables[i]);
	assert_int_equal(budget.used_bytes, 0);
	stack_table_init(&tables[0], &budget);
	assert_int_equal(fill(&tables[0]), first);
	stack_table_done(&tables[0]);
}

UNIT_TESTS(stack_table)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),	    cmocka_unit_test(test_different),
		cmocka_unit_test(test_threads),	    cmocka_unit_test(test_bound_count),
		cmocka_unit_test(test_bound_bytes), cmocka_unit_test(test_budget_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
