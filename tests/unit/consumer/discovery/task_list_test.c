/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/discovery/task_list.h"

#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <errno.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"

static struct fake *fake;
static struct task_list list;

static int setup(void **state)
{
	fake = fake_new();
	return 0;
}

static int teardown(void **state)
{
	task_list_close(&list);
	if (fake)
		fake_free(fake);
	return 0;
}

/* More records than one read(2) gives, and a last one that is cut. */
static void test_many(void **state)
{
	enum { COUNT = 5000 };
	_cleanup_free_ struct task_record *tasks = calloc(COUNT, sizeof(*tasks));
	struct task_record task;

	assert_non_null(tasks);
	if (!fake)
		skip();
	for (uint32_t i = 0; i < COUNT; i++) {
		tasks[i].tgid = i + 1;
		memset(tasks[i].comm, 'x', COMM_BYTES);
	}
	fake_tasks(fake, tasks, COUNT);
	assert_int_equal(truncate(fake->tasks, (off_t)(COUNT * sizeof(*tasks) - 1)), 0);
	assert_int_equal(task_list_open(&fake->a.pins, 0, &list), 0);
	for (uint32_t i = 0; i < COUNT - 1; i++) {
		assert_int_equal(task_list_next(&list, 0, &task), 1);
		assert_int_equal(task.tgid, i + 1);
		assert_int_equal(strlen(task.comm), COMM_BYTES - 1);
	}
	assert_int_equal(task_list_next(&list, 0, &task), 0);
	task_list_close(&list);
	unlink(fake->tasks);
	assert_int_equal(task_list_open(&fake->a.pins, 0, &list), -ENOENT);
}

/* Without a match, empty records end a read: the list pauses there once its time is over. */
static void test_pauses(void **state)
{
	struct task_record tasks[3 * TASKS_AT_ONCE + 1] = { 0 }, task;

	if (!fake)
		skip();
	tasks[3 * TASKS_AT_ONCE].tgid = 7;
	fake_tasks(fake, tasks, 3 * TASKS_AT_ONCE + 1);
	assert_int_equal(task_list_open(&fake->a.pins, 0, &list), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(task_list_next(&list, 0, &task), -EAGAIN);
	assert_int_equal(task_list_next(&list, 0, &task), 1);
	assert_int_equal(task.tgid, 7);
	task_list_close(&list);
	/* With time left it passes over them. */
	assert_int_equal(task_list_open(&fake->a.pins, 0, &list), 0);
	assert_int_equal(task_list_next(&list, UINT64_MAX, &task), 1);
	assert_int_equal(task.tgid, 7);
}

/* Each list has its trie; between its reads the word has the value that the others expect. */
static void test_tries(void **state)
{
	struct task_record task = { .tgid = 5 };

	if (!fake)
		skip();
	fake_tasks(fake, &task, 1);
	fake->control.active = 1;
	fake->control.scan_trie = 0;
	assert_int_equal(task_list_open(&fake->a.pins, 0, &list), 0);
	assert_int_equal(task_list_next(&list, 0, &task), 1);
	assert_int_equal(fake->control.scan_trie, 1);
}

/* Why a process is not in a list: it has ended, it is the kernel's, or it is hidden. */
static void test_unlisted(void **state)
{
	assert_int_equal(task_list_unlisted(4194303), TASK_LIST_GONE);
	assert_int_equal(task_list_unlisted((uint32_t)getpid()), TASK_LIST_HIDDEN);
	/* In a container process 2 is a program, or nothing. */
	if (access("/proc/2", F_OK) == 0 && access("/proc/2/exe", R_OK) < 0 && geteuid() == 0)
		assert_int_equal(task_list_unlisted(2), TASK_LIST_KERNEL);
}

UNIT_TESTS(task_list)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unlisted),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tries, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
