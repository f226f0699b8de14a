/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "consumer/cgroup/lookup_pool.h"
#include "consumer/io/turn.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define SOON_NS (2 * NSEC_PER_SEC) /* on a machine that others load */

/* A call that waits for a byte, or not at all (fd -1). */
struct call {
	struct lookup_call work;
	int fd;
	pthread_t ran_in;
	bool ran;
};

static int freed;

static void run(struct lookup_call *w)
{
	struct call *c = (struct call *)w;
	char byte;

	if (c->fd >= 0)
		assert_int_equal(read(c->fd, &byte, 1), 1);
	c->ran_in = pthread_self();
	c->ran = true;
}

static void free_call(struct lookup_call *w)
{
	__atomic_add_fetch(&freed, 1, __ATOMIC_RELAXED);
	free(w);
}

static struct call *new_call(uint64_t owner, int fd)
{
	struct call *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->work = (struct lookup_call){ .run = run, .free = free_call, .owner = owner };
	c->fd = fd;
	return c;
}

static struct lookup_call *wait_late(struct lookup_pool *a)
{
	uint64_t until_ns = clock_mono_ns() + SOON_NS;
	struct lookup_call *w;

	while (!(w = lookup_pool_late(a)) && clock_mono_ns() < until_ns)
		usleep(1000);
	return w;
}

/* In a thread, if there are threads; the caller's again. Once more where no CPU was free in time.
 */
static void test_runs(void **state)
{
	struct lookup_pool *a;
	struct call *c = new_call(1, -1);

	assert_int_equal(lookup_pool_run(NULL, &c->work), 0);
	assert_true(pthread_equal(c->ran_in, pthread_self()));
	free(c);
	assert_int_equal(lookup_pool_new(&a), 0);
	c = NULL;
	for (int i = 0; i < 10; i++) {
		free(c);
		c = new_call(1, -1);
		if (lookup_pool_run(a, &c->work) == 0)
			break;
		c = (struct call *)wait_late(a);
		assert_non_null(c);
	}
	assert_true(c->ran && !pthread_equal(c->ran_in, pthread_self()));
	assert_null(lookup_pool_late(a));
	free(c);
	lookup_pool_stop(a);
}

/* In parts: it is not there before it has run, and a caller that gives it up finds it late. */
static void test_in_parts(void **state)
{
	struct call *c, *held;
	struct lookup_pool *a;
	int gate[2], r;

	c = new_call(1, -1);
	assert_int_equal(lookup_pool_start(NULL, &c->work), 0);
	assert_int_equal(lookup_pool_wait(NULL, &c->work, 0), 0);
	assert_true(c->ran);
	free(c);
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(lookup_pool_new(&a), 0);
	held = new_call(1, gate[0]);
	assert_int_equal(lookup_pool_start(a, &held->work), 0);
	assert_int_equal(lookup_pool_wait(a, &held->work, clock_mono_ns()), -EAGAIN);
	c = new_call(2, -1);
	assert_int_equal(lookup_pool_start(a, &c->work), 0);
	r = lookup_pool_wait(a, &c->work, clock_mono_ns() + SOON_NS);
	assert_int_equal(r, 0);
	free(c);
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_int_equal(lookup_pool_wait(a, &held->work, clock_mono_ns() + SOON_NS), 0);
	assert_true(held->ran);
	free(held);
	held = new_call(1, gate[0]);
	assert_int_equal(lookup_pool_start(a, &held->work), 0);
	lookup_pool_abandon(a, &held->work);
	assert_null(lookup_pool_late(a));
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_ptr_equal(wait_late(a), held);
	free(held);
	lookup_pool_stop(a);
	close(gate[0]);
	close(gate[1]);
}

/* Nobody waits for a thread beyond the turn of the loop. */
static void test_within_turn(void **state)
{
	uint64_t least_ns = UINT64_MAX, began_ns;
	struct lookup_pool *a;
	int gate[2];

	freed = 0;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(lookup_pool_new(&a), 0);
	for (uint64_t owner = 1; owner <= LOOKUP_POOL_THREADS; owner++) {
		usleep(LOOKUP_POOL_WAIT_NS / 1000);
		began_ns = clock_mono_ns();
		turn_start(began_ns - (owner % 2 ? 0 : TURN_NS));
		assert_int_equal(lookup_pool_run(a, &new_call(owner, gate[0])->work), -EBUSY);
		turn_start(0);
		if (owner % 2)
			least_ns = MIN(least_ns, clock_mono_ns() - began_ns);
		else /* the turn is over */
			assert_in_range(clock_mono_ns() - began_ns, TURN_LEAST_NS, SOON_NS);
	}
	assert_in_range(least_ns, TURN_NS, LOOKUP_POOL_WAIT_NS - 1);
	lookup_pool_stop(a);
	assert_int_equal(write(gate[1], "xxxx", LOOKUP_POOL_THREADS), LOOKUP_POOL_THREADS);
	while (__atomic_load_n(&freed, __ATOMIC_RELAXED) < LOOKUP_POOL_THREADS)
		usleep(1000);
}

/*
 * Owners that block all their threads do not delay a call of the agent's own; its next call does.
 */
static void test_own_thread(void **state)
{
	struct call *held[LOOKUP_POOL_THREADS], *own;
	struct lookup_pool *a;
	int gate[2];

	freed = 0;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(lookup_pool_new(&a), 0);
	for (uint64_t i = 0; i < LOOKUP_POOL_THREADS; i++) {
		held[i] = new_call(i + 1, gate[0]);
		assert_int_equal(lookup_pool_start(a, &held[i]->work), 0);
	}
	assert_int_equal(lookup_pool_start(a, &new_call(100, -1)->work), -EBUSY);
	own = new_call(LOOKUP_POOL_AGENT, -1);
	assert_int_equal(lookup_pool_start(a, &own->work), 0);
	assert_int_equal(lookup_pool_start(a, &new_call(LOOKUP_POOL_AGENT, -1)->work), -EBUSY);
	assert_int_equal(lookup_pool_wait(a, &own->work, clock_mono_ns() + SOON_NS), 0);
	assert_true(own->ran);
	free(own);
	own = new_call(LOOKUP_POOL_AGENT, -1);
	assert_int_equal(lookup_pool_start(a, &own->work), 0);
	while (lookup_pool_wait_turn(a, &own->work) < 0)
		;
	free(own);
	for (size_t i = 0; i < LOOKUP_POOL_THREADS; i++)
		lookup_pool_abandon(a, &held[i]->work);
	lookup_pool_stop(a);
	assert_int_equal(write(gate[1], "xxxx", LOOKUP_POOL_THREADS), LOOKUP_POOL_THREADS);
	while (__atomic_load_n(&freed, __ATOMIC_RELAXED) < LOOKUP_POOL_THREADS + 2)
		usleep(1000);
	close(gate[0]);
	close(gate[1]);
}

/*
 * Who waits costs the loop a moment, and his next call none; that of another owner is served. What
 * comes late is kept.
 */
static void test_late(void **state)
{
	struct call *held, *other;
	struct lookup_pool *a;
	uint64_t began_ns;
	int gate[2], r = -EBUSY;

	freed = 0;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(lookup_pool_new(&a), 0);
	held = new_call(1, gate[0]);
	began_ns = clock_mono_ns();
	assert_int_equal(lookup_pool_run(a, &held->work), -EBUSY);
	assert_in_range(clock_mono_ns() - began_ns, TURN_NS, SOON_NS);
	assert_int_equal(lookup_pool_run(a, &new_call(1, -1)->work), -EBUSY);
	assert_int_equal(freed, 1);
	for (int i = 0; i < 50 && r < 0; i++) {
		struct lookup_call *w;

		usleep(10000);
		other = new_call(2, -1);
		r = lookup_pool_run(a, &other->work);
		while ((w = lookup_pool_late(a)))
			w->free(w);
	}
	assert_int_equal(r, 0);
	assert_true(other->ran);
	free(other);
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_ptr_equal(wait_late(a), held);
	assert_true(held->ran);
	free(held);
	lookup_pool_stop(a);
	close(gate[0]);
	close(gate[1]);
}

/* As many that wait as there are threads: the loop has waited once in all, and a little for each.
 */
static void test_all_wait(void **state)
{
	uint64_t began_ns, least_ns = UINT64_MAX;
	int gate[2];

	for (int again = 0; again < 5; again++) {
		struct lookup_pool *a;

		assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
		assert_int_equal(lookup_pool_new(&a), 0);
		began_ns = clock_mono_ns();
		for (uint64_t owner = 1; owner <= LOOKUP_POOL_THREADS + 3; owner++)
			assert_int_equal(lookup_pool_run(a, &new_call(owner, gate[0])->work),
					 -EBUSY);
		least_ns = MIN(least_ns, clock_mono_ns() - began_ns);
		began_ns = clock_mono_ns();
		lookup_pool_stop(a); /* at once, and nothing is freed that a thread still needs */
		assert_in_range(clock_mono_ns() - began_ns, 0, SOON_NS);
		assert_int_equal(write(gate[1], "xxxx", LOOKUP_POOL_THREADS), LOOKUP_POOL_THREADS);
	}
	assert_in_range(least_ns, LOOKUP_POOL_WAIT_NS, 100 * NSEC_PER_MSEC);
}

/* What comes late is kept up to a bound. */
static void test_late_is_bounded(void **state)
{
	struct lookup_call *w;
	struct lookup_pool *a;
	size_t kept = 0;
	int gate[2];

	freed = 0;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	assert_int_equal(lookup_pool_new(&a), 0);
	for (int i = 0; i < 24; i++) {
		uint64_t until_ns = clock_mono_ns() + SOON_NS;

		assert_int_equal(lookup_pool_run(a, &new_call(1, gate[0])->work), -EBUSY);
		assert_int_equal(write(gate[1], "x", 1), 1);
		/* Until the owner's seat is free again. */
		for (int r = -EBUSY; r < 0 && clock_mono_ns() < until_ns;) {
			struct call *c = new_call(1, -1);

			r = lookup_pool_run(a, &c->work);
			if (r == 0)
				free(c);
			else
				usleep(1000);
		}
	}
	while ((w = lookup_pool_late(a))) {
		kept++;
		w->free(w);
	}
	assert_in_range(kept, 1, 16);
	lookup_pool_stop(a);
	close(gate[0]);
	close(gate[1]);
}

UNIT_TESTS(lookup_pool)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),	    cmocka_unit_test(test_in_parts),
		cmocka_unit_test(test_own_thread),  cmocka_unit_test(test_late),
		cmocka_unit_test(test_all_wait),    cmocka_unit_test(test_late_is_bounded),
		cmocka_unit_test(test_within_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
