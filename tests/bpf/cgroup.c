/* SPDX-License-Identifier: BSD-2-Clause */
/* cgroup.c: cgroups that appear, fill, empty and go, on the real hierarchy. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

HARNESS_LOADS("on_*");

#define WAIT_MS 30000 /* of a busy machine */

static int setup(void **state)
{
	struct harness *h = harness_new(NULL);

	harness_discover(h);
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	harness_free(*state);
	return 0;
}

/* A rule for the groups "web..." of this test. */
static void rule_web(struct harness *h, int which)
{
	char prefix[256];

	snprintf(prefix, sizeof(prefix), "%.200s/web", h->path);
	harness_cgroup_rule(h, which, prefix, 11);
}

/* A killed process leaves its group a little after it is reaped. */
static void remove_group(const char *dir)
{
	int r = rmdir(dir);

	for (int i = 0; i < WAIT_MS / 10 && r < 0 && errno == EBUSY; i++) {
		harness_sleep_ms(10);
		r = rmdir(dir);
	}
	assert_int_equal(r, 0);
}

static void life_of_a_matching_group(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;
	char dir[4096], path[512];
	uint64_t id;
	pid_t pid;

	rule_web(h, 0);
	id = harness_group(h, "web-1", dir);
	harness_drain(h);
	snprintf(path, sizeof(path), "%.300s/web-1", h->path);
	assert_int_equal(harness_events(h, EVENT_MKDIR, 0, &event), 1);
	assert_int_equal(event->cgroup_id, id);
	assert_int_equal(event->rule, 11);
	assert_string_equal(event->path, path);
	assert_int_equal(event->path_bytes, strlen(path) + 1);
	assert_int_equal(event->path_cut, 0);

	harness_watch(h, id, 3, SLOT_IDLE, 0);
	pid = harness_spawn("t-web", "sleep", dir);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_POPULATED, 0, &event), 1);
	assert_int_equal(event->cgroup_id, id);
	harness_kill(pid);
	remove_group(dir);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_EMPTY, 0, &event), 1);
	assert_int_equal(event->cgroup_id, id);
	assert_int_equal(harness_events(h, EVENT_RMDIR, 0, &event), 1);
	assert_int_equal(event->cgroup_id, id);
	assert_int_equal(event->rule, NO_SLOT);
	assert_string_equal(event->path, path);
}

static void others_are_silent(void **state)
{
	struct harness *h = *state;
	char dir[4096];
	pid_t pid;

	rule_web(h, 1); /* not the trie in force */
	harness_group(h, "web-2", dir);
	pid = harness_spawn("t-web", "sleep", dir);
	harness_kill(pid);
	remove_group(dir);
	harness_drain(h);
	assert_int_equal(h->events.count, 0);
}

static void watched_without_a_rule(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;
	char dir[4096];
	uint64_t id = harness_group(h, "plain", dir);

	harness_watch(h, id, 0, SLOT_IDLE, 0);
	harness_kill(harness_spawn("t-web", "sleep", dir));
	for (int i = 0; i < WAIT_MS / 10 && !harness_events(h, EVENT_EMPTY, 0, NULL); i++) {
		harness_sleep_ms(10);
		harness_drain(h);
	}
	assert_int_equal(harness_events(h, EVENT_POPULATED, 0, &event), 1);
	assert_int_equal(event->rule, NO_SLOT);
	assert_int_equal(harness_events(h, EVENT_EMPTY, 0, NULL), 1);
}

static void long_path_is_cut(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;
	char dir[4096], name[200];
	size_t n;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	memcpy(name, "web", 3);
	rule_web(h, 0);
	harness_group(h, name, dir);
	n = strlen(dir);
	snprintf(dir + n, sizeof(dir) - n, "/%s", name);
	assert_int_equal(mkdir(dir, 0755), 0);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_MKDIR, 0, &event), 2);
	assert_int_equal(event->path_cut, 0);
	event = h->events.records[1];
	assert_int_equal(event->path_cut, 1);
	assert_int_equal(event->path_bytes, CGROUP_PATH_BYTES);
	assert_int_equal(strlen(event->path), CGROUP_PATH_BYTES - 1);
}

/* The same path in a v1 hierarchy is another group. */
static void version_one_is_passed_over(void **state)
{
	struct harness *h = *state;
	char dir[512];

	snprintf(dir, sizeof(dir), "/sys/fs/cgroup/pids/web-v1-%d", getpid());
	if (!h->hybrid || mkdir(dir, 0755) < 0)
		skip();
	rmdir(dir);
	harness_cgroup_rule(h, 0, "/web-v1", 1);
	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(rmdir(dir), 0);
	harness_drain(h);
	assert_int_equal(h->events.count, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(life_of_a_matching_group),   T(others_are_silent),
		T(watched_without_a_rule),     T(long_path_is_cut),
		T(version_one_is_passed_over),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
