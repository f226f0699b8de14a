/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers that do their work, are late, and end without a word; those that no signal ends are
 * tests/broker's. */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loader/broker/broker_worker.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

static struct broker_workers workers;

static int setup(void **state)
{
	signal(SIGCHLD, SIG_IGN);
	broker_workers_init(&workers);
	return 0;
}

static int teardown(void **state)
{
	broker_workers_done(&workers);
	return 0;
}

static void opens(void *context, struct broker_result *result)
{
	const char *path = context;

	result->fds[result->count++] = open(path, O_RDONLY | O_CLOEXEC);
}

/* Counts the open ones of the descriptors 0 to 2 and of the other worker's socket. */
static void looks(void *context, struct broker_result *result)
{
	const int *other = context;

	result->refusal = REFUSAL_KERNEL;
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		result->error -= fcntl(fd, F_GETFD) >= 0;
	result->error -= fcntl(*other, F_GETFD) >= 0;
}

static void counts(void *context, struct broker_result *result)
{
	result->counted = true;
	result->held = (struct broker_holdings){ .events = 1, .links = 2, .own = 3, .flying = 4 };
}

static void hangs(void *context, struct broker_result *result)
{
	for (;;)
		pause();
}

static void goes(void *context, struct broker_result *result)
{
	_exit(1);
}

static int wait_and_take(struct broker_worker *worker, struct broker_result *ret_result)
{
	struct pollfd p = { .fd = worker->fd, .events = POLLIN };

	poll(&p, 1, BROKER_WORK_MS + 1000);
	return broker_worker_take(worker, clock_mono_ns(), ret_result);
}

static void brings_what_it_opened(void **state)
{
	struct broker_result result;
	struct broker_worker *worker;
	struct stat st;

	assert_int_equal(broker_worker_start(&workers, false, opens, "/dev/null", &worker), 0);
	assert_int_equal(wait_and_take(worker, &result), 0);
	assert_int_equal(result.refusal, REFUSAL_NONE);
	assert_int_equal(result.count, 1);
	assert_int_equal(fstat(result.fds[0], &st), 0);
	assert_true(S_ISCHR(st.st_mode) && minor(st.st_rdev) == 3);
	assert_int_equal(fcntl(result.fds[0], F_GETFD), FD_CLOEXEC);
	close(result.fds[0]);
	assert_int_equal(worker->fd, -1);
}

static void brings_what_it_counted(void **state)
{
	struct broker_result result;
	struct broker_worker *worker;

	assert_int_equal(broker_worker_start(&workers, true, counts, NULL, &worker), 0);
	assert_int_equal(wait_and_take(worker, &result), 0);
	assert_true(result.counted);
	assert_int_equal(result.count, 0);
	assert_int_equal(result.held.events, 1);
	assert_int_equal(result.held.links, 2);
	assert_int_equal(result.held.own, 3);
	assert_int_equal(result.held.flying, 4);
}

static void holds_nothing_of_the_others(void **state)
{
	struct broker_worker *first, *second;
	struct broker_result result;
	int fd;

	assert_int_equal(broker_worker_start(&workers, false, hangs, NULL, &first), 0);
	fd = first->fd;
	assert_int_equal(broker_worker_start(&workers, false, looks, &fd, &second), 0);
	assert_int_equal(wait_and_take(second, &result), 0);
	assert_int_equal(result.refusal, REFUSAL_KERNEL);
	assert_int_equal(result.error, 0);
}

static void late_is_given_up(void **state)
{
	struct broker_result result;
	struct broker_worker *worker;

	assert_int_equal(broker_worker_start(&workers, false, hangs, NULL, &worker), 0);
	assert_int_equal(broker_worker_take(worker, clock_mono_ns(), &result), -EAGAIN);
	broker_worker_look(worker);
	assert_true(worker->fd >= 0);
	/* One that no signal ends is still there then. */
	assert_int_equal(broker_worker_take(worker, worker->end_ns, &result), -ETIMEDOUT);
	assert_true(worker->given_up && worker->fd >= 0);
	broker_worker_look(worker);
	assert_true(worker->fd >= 0);
	/* SIGALRM ends it: without, it hangs for good. */
	assert_int_equal(poll(&(struct pollfd){ .fd = worker->fd, .events = POLLIN }, 1, 20000), 1);
	broker_worker_look(worker);
	assert_int_equal(worker->fd, -1);
	assert_false(worker->given_up);
}

static void ends_without_a_word(void **state)
{
	struct broker_result result;
	struct broker_worker *worker;

	assert_int_equal(broker_worker_start(&workers, false, goes, NULL, &worker), 0);
	assert_int_equal(wait_and_take(worker, &result), -ETIMEDOUT);
	assert_int_equal(worker->fd, -1);
}

static void no_more_than_may_be(void **state)
{
	struct broker_worker *all[BROKER_WORKERS], *more;

	for (size_t i = 0; i < BROKER_WORKERS; i++)
		assert_int_equal(broker_worker_start(&workers, false, hangs, NULL, &all[i]), 0);
	assert_int_equal(broker_worker_start(&workers, false, hangs, NULL, &more), -EBUSY);
	/* A counting worker has places of its own. */
	assert_int_equal(broker_worker_start(&workers, true, goes, NULL, &more), 0);
	broker_worker_give_up(all[2]);
	assert_int_equal(broker_worker_start(&workers, false, hangs, NULL, &more), -EBUSY);
	poll(&(struct pollfd){ .fd = all[2]->fd, .events = POLLIN }, 1, BROKER_WORK_MS + 1000);
	broker_worker_look(all[2]);
	assert_int_equal(broker_worker_start(&workers, false, goes, NULL, &more), 0);
	assert_ptr_equal(more, all[2]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_TESTS(broker_worker)
{
	const struct CMUnitTest tests[] = {
		TEST(brings_what_it_opened),	   TEST(brings_what_it_counted),
		TEST(holds_nothing_of_the_others), TEST(late_is_given_up),
		TEST(ends_without_a_word),	   TEST(no_more_than_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
