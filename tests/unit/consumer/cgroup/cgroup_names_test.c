/* SPDX-License-Identifier: BSD-2-Clause */
/* On a tree of directories. */
#include "consumer/cgroup/cgroup_names.h"

#include <stdlib.h>

#include "tests/unit/consumer/testing/cgroups_testing.h"

#define NOBODY 0x7fffffffffff

static struct cgroup_names names;

static int setup_names(void **state)
{
	cgroup_names_init(&names);
	return setup(state);
}

static int teardown_names(void **state)
{
	cgroup_names_done(&names);
	return teardown(state);
}

/* The path that the line of the cgroup has, or why it has none. */
static void says(uint64_t id, const char *wanted)
{
	const char *why = NULL;
	char *path = NULL;

	cgroup_names_fill(&names, &cgroups, id, &path, &why);
	assert_true(!path != !why);
	assert_non_null(strstr(path ? path : why, wanted));
	free(path);
}

/* A cgroup without an event lives: it is not gone while the look for it goes on. */
static void test_three_answers(void **state)
{
	uint64_t young = make("/young");

	assert_null(cgroup_names_ask(&names, &cgroups, young, 0));
	assert_null(cgroup_names_ask(&names, &cgroups, NOBODY, 0));
	assert_true(cgroup_names_await(&names, &cgroups));
	says(young, "had not ended");
	says(NOBODY, "had not ended");
	look_up(young);
	assert_false(cgroup_names_await(&names, &cgroups));
	says(young, "/young");
	says(NOBODY, "the cgroup ended");
}

/* What one signal has found all have, also once the cgroup is gone. */
static void test_kept(void **state)
{
	uint64_t id = make("/job");

	assert_null(cgroup_names_ask(&names, &cgroups, id, 0)); /* runq knows no process in it */
	cgroups_learn(&cgroups, id, "/job");			/* neighbours does */
	assert_string_equal(cgroup_names_ask(&names, &cgroups, id, 5), "/job");
	cgroups_forget(&cgroups, id);
	assert_null(cgroups_path(&cgroups, id, 0));
	says(id, "/job");
	assert_false(cgroup_names_await(&names, &cgroups));
}

/* More than the table holds are looked up all the same; without a table too. */
static void test_many(void **state)
{
	char path[32];
	uint64_t id;

	for (int i = 0; i <= CGROUP_NAMES_MAX; i++) {
		snprintf(path, sizeof(path), "/c%d", i);
		id = make(path);
		cgroups_learn(&cgroups, id, path);
		assert_string_equal(cgroup_names_ask(&names, &cgroups, id, 0), path);
	}
	says(id, path);
	assert_string_equal(cgroup_names_ask(NULL, &cgroups, id, 0), path);
	assert_null(cgroup_names_ask(NULL, &cgroups, NOBODY, 0));
}

UNIT_TESTS(cgroup_names)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_three_answers, setup_names, teardown_names),
		cmocka_unit_test_setup_teardown(test_kept, setup_names, teardown_names),
		cmocka_unit_test_setup_teardown(test_many, setup_names, teardown_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
