/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "consumer/discovery/process_events.h"
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

/* Behind the event of a kill lies its victim, and no path. */
static void test_valid_victim(void **state)
{
	_cleanup_free_ struct event *e = NULL;
	static const char none[sizeof(struct oom_victim)];
	size_t bytes;

	e = new_event(EVENT_OOM, none, sizeof(none), &bytes);
	e->path_bytes = 0;
	assert_true(process_events_valid(e, bytes));
	assert_false(process_events_valid(e, bytes - 1));
	e->path_bytes = sizeof(none);
	assert_false(process_events_valid(e, bytes));
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

UNIT_TESTS(process_events)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_kinds),
		cmocka_unit_test(test_valid_victim),
		cmocka_unit_test(test_valid_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
