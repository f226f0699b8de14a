/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unmapped.c: the reports of stacks that leave the mappings of the table, their receiver and delay;
 * and the holes that a table has where the process was changing its mappings.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unwind_fixture.h"

HARNESS_LOADS("on_*", "sampler", "ranges*");

#define WAIT_MS 30000 /* of a busy machine, for events that come at once on any other */

static void on_fork(int signal)
{
	if (!fork())
		prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* A process with a published table that has none of its mappings; the number of the filling. */
static struct fixture begin_empty(uint64_t *ret_fill)
{
	struct fixture f = begin("burn");
	struct ranges_record record = { 0 };

	claim(&f, false);
	f.claims->count = 0;
	lie(&f, (struct unwind_rule){ .cfa = UNWIND_CFA_END }, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	harness_forget(f.h);
	*ret_fill = record.table_generation;
	return f;
}

/* While it runs the ring has always just woken its reader: no event but an urgent one wakes it. */
struct quieter {
	int fd; /* of the map event_wake */
	atomic_bool end;
};

static void *keep_quiet(void *context)
{
	struct quieter *q = context;

	while (!q->end) {
		uint64_t now = harness_now_ns();
		uint32_t zero = 0;

		bpf_map_update_elem(q->fd, &zero, &now, BPF_ANY);
		harness_sleep_ms(2);
	}
	return NULL;
}

/* Whether an event wakes a sleeper within `ms`, although another has just done so. */
static bool wakes(const struct fixture *f, int ms)
{
	struct pollfd p = { .fd = ring_buffer__epoll_fd(f->h->events.ring), .events = POLLIN };
	struct quieter q = { .fd = bpf_map__fd(f->h->skel->maps.event_wake) };
	const struct sched_param soon = { .sched_priority = 1 };
	pthread_t thread;
	bool woken;

	harness_forget(f->h);
	assert_int_equal(pthread_create(&thread, NULL, keep_quiet, &q), 0);
	pthread_setschedparam(thread, SCHED_FIFO, &soon); /* a busy machine keeps it waiting else */
	harness_sleep_ms(20);
	harness_tick(f->h, HZ);
	woken = poll(&p, 1, ms) > 0;
	q.end = true;
	pthread_join(thread, NULL);
	ticks_stop(f->h);
	return woken;
}

static void the_first_of_a_table_wakes(void **state)
{
	uint64_t number;
	struct fixture f = begin_empty(&number);
	struct ranges_record record = { 0 };

	assert_true(wakes(&f, WAIT_MS));
	assert_true(harness_events(f.h, EVENT_UNMAPPED, (uint32_t)f.pid, NULL) > 0);
	/* Reported once more, but without a wake-up. */
	assert_false(wakes(&f, 400));
	for (int i = 0; i < 100 && !harness_events(f.h, EVENT_UNMAPPED, (uint32_t)f.pid, NULL); i++)
		sample_for(f.h, 100);
	assert_true(harness_events(f.h, EVENT_UNMAPPED, (uint32_t)f.pid, NULL) > 0);
	/* The next table's first is a first again. */
	claim(&f, false);
	f.claims->count = 0;
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	assert_true(wakes(&f, WAIT_MS));
	end(&f);
}

/* A child that is walked by its parent's table is to have its own anyway: it reports nothing. */
static void heirs_tell_nothing(void **state)
{
	uint64_t number;
	struct fixture f = begin_empty(&number);
	size_t children = 0;

	harness_discover(f.h);
	assert_int_equal(kill(f.pid, SIGUSR2), 0);
	harness_sleep_ms(100);
	assert_int_equal(kill(f.pid, SIGSTOP), 0);
	harness_forget(f.h);
	for (int i = 0; i < 100 && children < 20; i++) {
		sample_for(f.h, 100);
		children = 0;
		for (size_t k = 0; k < f.h->samples.count; k++) {
			const struct sample *s = f.h->samples.records[k];

			children += s->tgid != (uint32_t)f.pid &&
				    s->table_generation == (uint32_t)number &&
				    s->stop_reason == UNWIND_END_NO_MAPPING;
		}
	}
	assert_true(children >= 20);
	assert_int_equal(harness_events(f.h, EVENT_UNMAPPED, 0, NULL), 0);
	end(&f);
}

/* Fills the table. Returns the number of holes in it. */
static size_t count_holes(struct fixture *f)
{
	struct ranges_record record = { 0 };
	struct unwind_ranges ranges;
	uint32_t table = TABLE, empty = 0;

	assert_true(fill(f, &record));
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.unwind_ranges), &table, &ranges),
		0);
	for (uint32_t i = 0; i < ranges.count; i++)
		empty += !UNWIND_RANGE_PAGES(ranges.ranges[i]);
	assert_int_equal(record.missed, empty);
	assert_int_equal(record.cut, 0);
	return empty;
}

/*
 * bpf_find_vma does not wait for the holder of the lock: a failed lookup is reported. A stopped
 * process holds no lock.
 */
static void holes_are_said(void **state)
{
	struct fixture f = begin("churn");
	size_t fillings = 0, holes = 0;

	claim(&f, false);
	assert_int_equal(kill(f.pid, SIGSTOP), 0);
	assert_int_equal(waitpid(f.pid, NULL, WUNTRACED), f.pid);
	assert_int_equal(count_holes(&f), 0);
	assert_int_equal(kill(f.pid, SIGCONT), 0);
	for (uint64_t until = harness_now_ns() + 20000000000ull; harness_now_ns() < until && !holes;
	     fillings++)
		holes = count_holes(&f);
	print_message("%zu fillings, %zu holes\n", fillings, holes);
	end(&f);
	if (!holes)
		skip();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_a_table_wakes),
		cmocka_unit_test(heirs_tell_nothing),
		cmocka_unit_test(holes_are_said),
	};

	if (argc > 2 && !strcmp(argv[1], "--child"))
		signal(SIGUSR2, on_fork);
	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
