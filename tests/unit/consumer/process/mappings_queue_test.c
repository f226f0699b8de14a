/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes with mappings that a walk over all tasks reads. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/process/mappings_queue.h"
#include "shared/tools/clock.h"
#include "tests/unit/consumer/symbols/records_testing.h"

#define FIRST 0x3ffff000u /* no process has such a pid */
#define START 5

static struct fake *fake;
static struct mappings_queue *queue;

static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	fake->a.pins.abi.vma_open_coded = 0;
	queue = &fake->a.queue;
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	fake = NULL;
	return 0;
}

static struct process *made(uint32_t tgid)
{
	struct process *p;

	assert_int_equal(process_get(&fake->a.processes, tgid, START, &p), 0);
	return p;
}

static struct process *asked(uint32_t tgid)
{
	struct process *p = made(tgid);

	mappings_queue_ask(queue, p, 0);
	return p;
}

static FILE *records_open(void)
{
	FILE *file = fopen(fake->vmas, "we");

	assert_non_null(file);
	return file;
}

static void put_record(FILE *file, uint32_t tgid, uint64_t start, uint32_t flags)
{
	const struct mapping_record record = { .start_ns = START,
					       .tgid = tgid,
					       .start = start,
					       .end = start + 0x1000,
					       .inode = 7,
					       .device = 1,
					       .flags = flags };

	records_file_mapping(file, record, flags & MAPPING_MORE ? NULL : "/nonexistent/app");
}

/* What the walk lists: two mappings of each of `count` processes from `first` on. */
static void list(uint32_t first, uint32_t count)
{
	FILE *file = records_open();

	for (uint32_t tgid = first; tgid < first + count; tgid++) {
		put_record(file, tgid, 0x10000 + 0x1000 * (uint64_t)(tgid - first), MAPPING_IS_EXE);
		put_record(file, tgid, 0x9000000, 0);
	}
	fclose(file);
}

static struct process *next(void)
{
	return mappings_queue_next(queue, clock_mono_ns() + 10 * NSEC_PER_SEC);
}

static size_t count_asked(void)
{
	int fd = fake->a.pins.asked_fd;
	size_t count = 0;
	uint32_t key = 0;

	for (const uint32_t *from = NULL; bpf_map_get_next_key(fd, from, &key) == 0; from = &key)
		count++;
	return count;
}

static void test_not_used(void **state)
{
	if (!fake)
		skip();
	assert_true(mappings_queue_is_used(queue));
	fake->a.pins.abi.vma_open_coded = 1;
	assert_false(mappings_queue_is_used(queue));
}

/* One walk reads all waiting processes, and no other. */
static void test_one_walk(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	for (uint32_t i = 0; i < 4; i++)
		asked(FIRST + 2 * i);
	mappings_queue_ask(queue, made(FIRST), 0);
	assert_int_equal(queue->count, 4);
	list(FIRST, 8);
	for (uint32_t i = 0; i < 4; i++) {
		p = next();
		assert_non_null(p);
		assert_int_equal(p->tgid, FIRST + 2 * i);
		assert_int_equal(p->maps.count, 2);
		assert_int_equal(p->maps.items[0].start, 0x10000 + 0x2000 * (uint64_t)i);
		assert_true(p->maps.exe && p->tried_ns);
	}
	assert_null(next());
	assert_int_equal(queue->walk.walks, 1);
	assert_int_equal(count_asked(), 0);
	assert_false(mappings_queue_has_rest(queue));
}

/* A process without room in the map waits for the next walk; that is counted, and none is lost. */
static void test_full(void **state)
{
	size_t answered = 0;

	if (!fake)
		skip();
	for (uint32_t i = 0; i < 2 * FAKE_ASKED + 1; i++)
		asked(FIRST + i);
	list(FIRST, 2 * FAKE_ASKED + 1);
	for (struct process *p; (p = next()); answered++)
		assert_int_equal(p->maps.count, 2);
	assert_int_equal(answered, 2 * FAKE_ASKED + 1);
	assert_int_equal(queue->walk.walks, 3);
	assert_int_equal(queue->full, 2);
	assert_int_equal(queue->failed, 0);
	assert_int_equal(count_asked(), 0);
}

/* A map that another consumer has filled is emptied. */
static void test_filled(void **state)
{
	const struct asked_process value = { 0 };

	if (!fake)
		skip();
	for (uint32_t i = 0; i < FAKE_ASKED; i++)
		assert_int_equal(
			bpf_map_update_elem(fake->a.pins.asked_fd, &i, &value, BPF_NOEXIST), 0);
	asked(FIRST);
	list(FIRST, 1);
	assert_int_equal(next()->maps.count, 2);
	assert_int_equal(count_asked(), 0);
}

/* An unlisted process has ended, or its mappings change: then it is tried in some walks. */
static void test_unlisted(void **state)
{
	struct process *here;

	if (!fake)
		skip();
	here = asked((uint32_t)getpid());
	asked(FIRST);
	list(FIRST + 1, 3);
	assert_int_equal(next()->tgid, FIRST);
	assert_int_equal(queue->walk.walks, 1);
	assert_ptr_equal(next(), here);
	assert_int_equal(queue->walk.walks, MAPPINGS_QUEUE_WALKS);
	assert_int_equal(queue->failed, 1);
	assert_int_equal(here->maps.count, 0);
	assert_true(here->tried_ns > 0);
	assert_null(next());
	/* No list at all. */
	unlink(fake->vmas);
	asked((uint32_t)getpid());
	assert_ptr_equal(next(), here);
	assert_int_equal(queue->failed, 2);
	assert_int_equal(count_asked(), 0);
}

/* A reading from before execve(2), or before it was asked for, is followed by another. */
static void test_older(void **state)
{
	struct process *p;
	uint64_t now = clock_mono_ns();

	if (!fake)
		skip();
	p = asked(FIRST);
	list(FIRST, 1);
	process_mappings_exec(p, now + 50 * NSEC_PER_MSEC);
	assert_ptr_equal(next(), p);
	assert_true(p->maps.read_ns >= p->exec_ns);
	assert_true(queue->walk.walks > 1);
	p = asked(FIRST + 1);
	list(FIRST + 1, 1);
	mappings_queue_ask(queue, p, clock_mono_ns() + 50 * NSEC_PER_MSEC);
	/* What was read is taken meanwhile. */
	assert_ptr_equal(next(), p);
	assert_int_equal(p->maps.count, 2);
	assert_true(p->maps.read_ns < p->wait.since_ns);
	while (mappings_queue_has_rest(queue))
		next();
	assert_true(p->maps.read_ns >= p->wait.since_ns);
}

/* Younger mappings, which a sample made the consumer read, stay. */
static void test_younger(void **state)
{
	struct mappings fresh = { 0 };
	struct process *p;

	if (!fake)
		skip();
	p = asked(FIRST);
	list(FIRST, 1);
	assert_ptr_equal(next(), p);
	fresh.read_ns = p->maps.read_ns - 1;
	process_mappings_take(&fake->a.mappings, p, &fresh);
	assert_int_equal(p->maps.count, 2);
}

/* A process that has ended in the meantime gets nothing, and is nowhere any more. */
static void test_gone(void **state)
{
	struct process *p, *q;

	if (!fake)
		skip();
	p = asked(FIRST);
	q = asked(FIRST + 1);
	mappings_queue_leave(queue, p);
	assert_int_equal(queue->count, 1);
	assert_ptr_equal(queue->first, q);
	/* One that the walk has in hand already. */
	p = asked(FIRST + 2);
	list(FIRST, 3);
	assert_ptr_equal(next(), q);
	mappings_queue_leave(queue, p);
	process_gone(&fake->a.processes, p);
	assert_null(next());
	assert_int_equal(p->maps.count, 0);
	mappings_queue_ask(queue, p, 0);
	assert_false(mappings_queue_has_rest(queue));
}

/* Mappings that come in parts: the next walk goes on where the last one stopped. */
static void test_parts(void **state)
{
	struct asked_process value;
	uint32_t tgid = FIRST;
	struct process *p;
	FILE *file;

	if (!fake)
		skip();
	p = asked(FIRST);
	asked(FIRST + 1);
	file = records_open();
	put_record(file, FIRST, 0x10000, MAPPING_IS_EXE);
	put_record(file, FIRST, 0x20000 - 0x1000, MAPPING_MORE);
	put_record(file, FIRST + 1, 0x30000, 0);
	fclose(file);
	assert_int_equal(next()->tgid, FIRST + 1);
	list(FIRST + 3, 0);
	/* The end of the first walk, without time for the second. */
	assert_null(mappings_queue_next(queue, 0));
	file = records_open();
	put_record(file, FIRST, 0x20000, 0);
	fclose(file);
	while (queue->walk.walks == 1 && !p->maps.count)
		assert_true(next() == p || !mappings_queue_has_rest(queue));
	assert_int_equal(p->maps.count, 2);
	assert_int_equal(p->maps.items[1].start, 0x20000);
	assert_int_not_equal(bpf_map_lookup_elem(fake->a.pins.asked_fd, &tgid, &value), 0);
}

/* One that gets no further is given up. */
static void test_no_further(void **state)
{
	FILE *file;

	if (!fake)
		skip();
	asked((uint32_t)getpid());
	file = records_open();
	put_record(file, (uint32_t)getpid(), 0x10000, MAPPING_IS_EXE);
	put_record(file, (uint32_t)getpid(), 0x20000, MAPPING_MORE);
	fclose(file);
	assert_int_equal(next()->maps.count, 0);
	assert_int_equal(queue->failed, 1);
	assert_null(next());
	assert_false(mappings_queue_has_rest(queue));
}

/* The walk goes on in the next turn. */
static void test_turns(void **state)
{
	size_t answered = 0;

	if (!fake)
		skip();
	for (uint32_t i = 0; i < 4; i++)
		asked(FIRST + i);
	list(FIRST, 4);
	assert_null(mappings_queue_next(queue, 0));
	assert_true(mappings_queue_has_rest(queue));
	for (int turn = 0; turn < 100 && mappings_queue_has_rest(queue); turn++)
		while (mappings_queue_next(queue, clock_mono_ns() + NSEC_PER_MSEC))
			answered++;
	assert_int_equal(answered, 4);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(mappings_queue)
{
	const struct CMUnitTest tests[] = {
		EACH(test_not_used), EACH(test_one_walk), EACH(test_full),	 EACH(test_filled),
		EACH(test_unlisted), EACH(test_older),	  EACH(test_younger),	 EACH(test_gone),
		EACH(test_parts),    EACH(test_turns),	  EACH(test_no_further),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
