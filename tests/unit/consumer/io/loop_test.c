/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "consumer/io/loop.h"
#include "consumer/io/turn.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct fixture {
	struct loop *loop;
	struct loop_source *a, *b, *timer;
	int calls, limit;
	uint32_t events;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .limit = 1 };
	*state = &f;
	return loop_new(&f.loop);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	loop_free(f->loop);
	return 0;
}

static void count(void *context, uint32_t events)
{
	struct fixture *f = context;

	f->events = events;
	if (++f->calls >= f->limit)
		loop_stop(f->loop);
}

static void remove_both(void *context, uint32_t events)
{
	struct fixture *f = context;

	loop_remove(f->a);
	loop_remove(f->b);
	count(context, events);
}

static void test_readable(void **state)
{
	struct fixture *f = *state;
	int p[2];

	assert_int_equal(pipe(p), 0);
	assert_int_equal(loop_add(f->loop, p[0], EPOLLIN, count, f, &f->a), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->calls, 1);
	assert_true(f->events & EPOLLIN);
	loop_remove(f->a);
	close(p[0]);
	close(p[1]);
}

static void test_bad_descriptor(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_add(f->loop, -1, EPOLLIN, count, f, &f->a), -EBADF);
}

/* Both are ready in one round; whichever is called first removes both, the other must not be
 * called. */
static void test_remove_inside(void **state)
{
	struct fixture *f = *state;
	int p[2], q[2];

	assert_int_equal(pipe(p), 0);
	assert_int_equal(pipe(q), 0);
	assert_int_equal(loop_add(f->loop, p[0], EPOLLIN, remove_both, f, &f->a), 0);
	assert_int_equal(loop_add(f->loop, q[0], EPOLLIN, remove_both, f, &f->b), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(write(q[1], "x", 1), 1);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->calls, 1);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(q[i]);
	}
}

/* A silenced source does not even get a hang-up, which epoll(7) otherwise always reports. */
static void dawdle(void *context, uint32_t events)
{
	assert_false(turn_is_over());
	usleep(20000);
	assert_true(turn_is_over());
	count(context, events);
}

/* The longest turn is reported once, and is at least the time of one call. */
static void test_longest_turn(void **state)
{
	struct fixture *f = *state;
	struct loop_longest longest;

	assert_int_equal(loop_longest_turn(f->loop).turn_ns, 0);
	assert_int_equal(loop_turn(f->loop), 0);
	assert_int_equal(loop_timer(f->loop, dawdle, f, &f->timer), 0);
	assert_int_equal(loop_timer_set(f->timer, 1, 0), 0);
	assert_int_equal(loop_run(f->loop), 0);
	longest = loop_longest_turn(f->loop);
	assert_int_equal(loop_turn(f->loop), 1);
	assert_true(longest.turn_ns >= 20 * NSEC_PER_MSEC);
	assert_true(longest.own_ns <= longest.turn_ns);
	assert_false(turn_is_over()); /* there is none */
	assert_int_equal(loop_longest_turn(f->loop).turn_ns, 0);
	assert_int_equal(loop_longest_ever(f->loop).turn_ns, longest.turn_ns);
	assert_int_equal(loop_longest_ever(f->loop).own_ns, longest.own_ns);
}

static void test_silence(void **state)
{
	struct fixture *f = *state;
	int p[2];

	assert_int_equal(pipe(p), 0);
	assert_int_equal(loop_add(f->loop, p[0], EPOLLIN, remove_both, f, &f->a), 0);
	assert_int_equal(loop_timer(f->loop, count, f, &f->timer), 0);
	assert_int_equal(loop_change(f->a, 0), 0);
	close(p[1]);
	assert_int_equal(loop_timer_set(f->timer, 20 * NSEC_PER_MSEC, 0), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->calls, 1);
	assert_int_equal(loop_change(f->a, EPOLLIN), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->calls, 2);
	assert_true(f->events & EPOLLHUP);
	close(p[0]);
}

static void test_timer_once_and_again(void **state)
{
	struct fixture *f = *state;
	uint64_t start_ns = clock_mono_ns();

	assert_int_equal(loop_timer(f->loop, count, f, &f->timer), 0);
	assert_int_equal(loop_timer_set(f->timer, 10 * NSEC_PER_MSEC, 0), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_true(clock_mono_ns() - start_ns >= 10 * NSEC_PER_MSEC);
	f->limit = 4;
	assert_int_equal(loop_timer_set(f->timer, NSEC_PER_MSEC, NSEC_PER_MSEC), 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->calls, 4);
	loop_remove(f->timer);
}

static void disarm_other(void *context, uint32_t events)
{
	struct fixture *f = context;

	loop_timer_set(f->a, 0, 0);
	loop_timer_set(f->b, 0, 0);
	count(context, events);
}

/* Two timers expire in one round; the first disarms both: the other's expiry is void. */
static void test_timer_disarmed_in_round(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(loop_timer(f->loop, disarm_other, f, &f->a), 0);
	assert_int_equal(loop_timer(f->loop, disarm_other, f, &f->b), 0);
	assert_int_equal(loop_timer_set(f->a, 1, 0), 0);
	assert_int_equal(loop_timer_set(f->b, 1, 0), 0);
	usleep(1000);
	assert_int_equal(loop_run(f->loop), 0);
	assert_int_equal(f->calls, 1);
}

UNIT_TESTS(loop)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_readable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_descriptor, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remove_inside, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longest_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer_once_and_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer_disarmed_in_round, setup, teardown),
	};

	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
