/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <errno.h>
#include <unistd.h>

#include "consumer/discovery/process_events.h"
#include "consumer/discovery/process_scan.h"
#include "shared/tools/cleanup.h"

/* An event in memory of its exact size. */
static struct event *new_event(uint32_t kind, const char *path, size_t path_bytes,
			       size_t *ret_bytes)
{
	struct event *e = calloc(1, sizeof(*e) + path_bytes);

	assert_non_null(e);
	e->kind = kind;
	e->path_bytes = (uint16_t)path_bytes;
	memcpy(e->path, path, path_bytes);
	*ret_bytes = sizeof(*e) + path_bytes;
	return e;
}

static void test_valid_kinds(void **state)
{
	for (uint32_t kind = 0; kind < 20; kind++) {
		_cleanup_free_ struct event *e = NULL;
		size_t bytes;

		e = new_event(kind, "", 0, &bytes);
		assert_int_equal(process_events_valid(e, bytes),
				 kind >= EVENT_EXEC && kind <= EVENT_UNMAPPED);
		assert_false(process_events_valid(e, bytes - 1));
		assert_false(process_events_valid(e, 0));
	}
}

static void test_valid_path(void **state)
{
	_cleanup_free_ struct event *e = NULL;
	char path[CGROUP_PATH_BYTES + 1] = "/";
	size_t bytes;

	memset(path, 'p', CGROUP_PATH_BYTES - 1);
	e = new_event(EVENT_MKDIR, path, CGROUP_PATH_BYTES, &bytes);
	assert_true(process_events_valid(e, bytes));
	assert_false(process_events_valid(e, bytes - 1));
	/* Without its NUL; longer than it is; longer than any. */
	e->path[CGROUP_PATH_BYTES - 1] = 'x';
	assert_false(process_events_valid(e, bytes));
	e->path[CGROUP_PATH_BYTES - 1] = 0;
	e->path_bytes = CGROUP_PATH_BYTES + 1;
	assert_false(process_events_valid(e, bytes));
	e->path_bytes = UINT16_MAX;
	assert_false(process_events_valid(e, bytes));
}

static void test_find(void **state)
{
	struct task_record tasks[3] = { { .tgid = 5 },
					{ .tgid = 7, .comm = "node" },
					{ .tgid = 9 } };
	struct fake *f = fake_new();
	struct task_record found = {};

	if (!f)
		skip();
	fake_tasks(f, tasks, 3);
	assert_int_equal(process_scan_find(&f->a.discovery, 7, &found), 0);
	assert_string_equal(found.comm, "node");
	assert_int_equal(process_scan_find(&f->a.discovery, 8, &found), -ESRCH);
	assert_int_equal(found.tgid, 7);
	unlink(f->tasks);
	assert_int_equal(process_scan_find(&f->a.discovery, 7, &found), -ENOENT);
	fake_free(f);
}

/* More than one buffer of records, and a last one that is cut. */
static void test_find_many(void **state)
{
	enum { COUNT = 5000 };
	_cleanup_free_ struct task_record *tasks = calloc(COUNT, sizeof(*tasks));
	struct task_record found;
	struct fake *f;

	assert_non_null(tasks);
	f = fake_new();
	if (!f)
		skip();
	for (uint32_t i = 0; i < COUNT; i++) {
		tasks[i].tgid = i + 1;
		memset(tasks[i].comm, 'x', COMM_BYTES);
	}
	fake_tasks(f, tasks, COUNT);
	for (uint32_t tgid = 1; tgid <= COUNT; tgid += 499) {
		assert_int_equal(process_scan_find(&f->a.discovery, tgid, &found), 0);
		assert_int_equal(found.tgid, tgid);
		assert_int_equal(strlen(found.comm), COMM_BYTES - 1);
	}
	assert_int_equal(truncate(f->tasks, (off_t)(COUNT * sizeof(*tasks) - 1)), 0);
	assert_int_equal(process_scan_find(&f->a.discovery, COUNT - 1, &found), 0);
	assert_int_equal(process_scan_find(&f->a.discovery, COUNT, &found), -ESRCH);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_kinds),
		cmocka_unit_test(test_valid_path),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
