/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of processes over reuse of pids and exit, and the queue. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>

#include "consumer/jit/perf_map_files.h"
#include "consumer/process/process.h"
#include "shared/tools/macro.h"

#define MAX_PROCESSES 32

static struct perf_map_files perf_map_files;
static struct processes all;

static int setup(void **state)
{
	perf_map_files_init(&perf_map_files, "/nonexistent");
	processes_init(&all, MAX_PROCESSES, &perf_map_files);
	return 0;
}

static int teardown(void **state)
{
	processes_done(&all);
	perf_map_files_done(&perf_map_files);
	return 0;
}

static struct process *made(uint32_t tgid, uint64_t start_ns)
{
	struct process *p;

	assert_int_equal(process_get(&all, tgid, start_ns, &p), 0);
	return p;
}

/* A process is pid and start time: the pid used again is another. */
static void test_identity(void **state)
{
	struct process *first, *again;

	assert_null(process_find(&all, 100, 5));
	first = made(100, 5);
	assert_ptr_equal(made(100, 5), first);
	again = made(100, 6);
	assert_ptr_not_equal(again, first);
	assert_ptr_equal(process_find(&all, 100, 5), first);
	assert_ptr_equal(process_find(&all, 100, 6), again);
	assert_null(process_find(&all, 101, 5));
}

static void test_full(void **state)
{
	struct process *p = (struct process *)state;

	for (uint32_t i = 1; i <= MAX_PROCESSES; i++)
		made(i, i);
	assert_int_equal(process_get(&all, MAX_PROCESSES + 1, 1, &p), -ENOSPC);
	assert_ptr_equal(p, state);
	assert_int_equal(process_get(&all, 7, 7, &p), 0);
	/* Those that have gone and linger keep no newcomer out. */
	process_gone(&all, p);
	assert_int_equal(process_get(&all, MAX_PROCESSES + 1, 1, &p), 0);
	assert_null(process_find(&all, 7, 7));
}

/* It lingers for the samples that are on their way, and makes room then. */
static void test_gone(void **state)
{
	uint64_t linger_ns = PROCESS_LINGER_MS * NSEC_PER_MSEC, gone_ns;
	struct process *p = made(100, 5);

	made(101, 5);
	process_gone(&all, p);
	gone_ns = p->gone_ns;
	process_gone(&all, p);
	assert_int_equal(p->gone_ns, gone_ns);
	assert_int_equal(all.gone, 1);
	assert_ptr_equal(process_find(&all, 100, 5), p);
	processes_sweep(&all, p->gone_ns + linger_ns);
	assert_ptr_equal(process_find(&all, 100, 5), p);
	processes_sweep(&all, p->gone_ns + linger_ns + 1);
	assert_null(process_find(&all, 100, 5));
	assert_int_equal(all.gone, 0);
	assert_non_null(process_find(&all, 101, 5));
}

/* They are freed in the order in which they ended, however they were made; the others stay. */
static void test_gone_in_order(void **state)
{
	static const uint32_t order[] = { 5, 2, 9, 1 };
	uint64_t linger_ns = PROCESS_LINGER_MS * NSEC_PER_MSEC;
	struct process *p;

	for (uint32_t i = 1; i <= MAX_PROCESSES; i++)
		made(i, i);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		p = process_find(&all, order[i], order[i]);
		process_gone(&all, p);
		p->gone_ns = 1000 + i;
	}
	processes_sweep(&all, 1001 + linger_ns + 1);
	assert_null(process_find(&all, 5, 5));
	assert_null(process_find(&all, 2, 2));
	assert_int_equal(all.gone, 2);
	/* In a full table a newcomer costs one of them only: the first. */
	made(101, 1);
	made(102, 1);
	made(103, 1);
	assert_null(process_find(&all, 9, 9));
	assert_non_null(process_find(&all, 1, 1));
	assert_int_equal(all.gone, 1);
	processes_sweep(&all, UINT64_MAX);
	assert_null(process_find(&all, 1, 1));
	assert_int_equal(all.by_id.count, MAX_PROCESSES - 4 + 3);
}

/* First come, first served, each once. */
static void test_queue(void **state)
{
	struct process *a = made(1, 1), *b = made(2, 1), *c = made(3, 1);

	assert_null(process_take_read(&all));
	process_queue_read(&all, b);
	process_queue_read(&all, a);
	process_queue_read(&all, b);
	process_queue_read(&all, c);
	assert_ptr_equal(process_take_read(&all), b);
	process_queue_read(&all, b);
	assert_ptr_equal(process_take_read(&all), a);
	assert_ptr_equal(process_take_read(&all), c);
	assert_ptr_equal(process_take_read(&all), b);
	assert_null(process_take_read(&all));
}

/* A freed process leaves the queue, wherever it stands. */
static void test_queue_freed(void **state)
{
	for (uint32_t freed = 1; freed <= 3; freed++) {
		for (uint32_t tgid = 1; tgid <= 3; tgid++)
			process_queue_read(&all, made(tgid, freed));
		process_gone(&all, made(freed, freed));
		processes_sweep(&all, UINT64_MAX);
		for (uint32_t tgid = 1; tgid <= 3; tgid++)
			if (tgid != freed)
				assert_ptr_equal(process_take_read(&all), made(tgid, freed));
		process_queue_read(&all, made(9, freed));
		assert_ptr_equal(process_take_read(&all), made(9, freed));
		assert_null(process_take_read(&all));
	}
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(process)
{
	const struct CMUnitTest tests[] = {
		EACH(test_identity), EACH(test_full),	     EACH(test_gone),
		EACH(test_queue),    EACH(test_queue_freed), EACH(test_gone_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
