/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flood.c: the shares of the events ring: a process that renames itself in a loop, a user that
 * forks under a matching name, a cgroup that fills and empties; and that a service's start is seen
 * beside them. Rings are small, so that little is much.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

HARNESS_LOADS("on_*");

#define FLOODER	     "t-flood"
#define FLOODER_UID  61234
#define RECORD_BYTES (sizeof(struct event) + 8) /* in the ring, with its header */
#define WINDOW_MS    120			/* longer than a quota's window */
#define LIMIT_EVENTS 4				/* of one process or cgroup in a second */

/* Rules for the flooder's name and the service's, which differ in nothing but the name. */
static struct harness *begin(uint32_t events_bytes)
{
	struct harness_options options = { .events_bytes = events_bytes };
	struct harness *h = harness_new(&options);

	harness_discover(h);
	harness_rule(h, 0, FLOODER, true, 1, 1);
	harness_rule(h, 0, "t-service", true, 1, 1);
	return h;
}

struct flood {
	const char *dir; /* cgroup to run in; NULL: ours */
	uid_t uid, uids; /* the first and how many, one after the other */
	unsigned int count;
};

static int join(const char *dir)
{
	char path[4200], pid[16];
	int fd, n = snprintf(pid, sizeof(pid), "%d", getpid());

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, pid, (size_t)n) != n)
		return -1;
	return close(fd);
}

static int fork_many(unsigned int count)
{
	prctl(PR_SET_NAME, FLOODER);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

static int flood(void *context)
{
	const struct flood *f = context;

	if (f->dir && join(f->dir) < 0)
		return 1;
	for (uid_t i = 0; i < f->uids; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(setresuid(f->uid + i, f->uid + i, f->uid + i) || fork_many(f->count));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 0;
}

/* Starts the service in `dir`; whether its start and its end were reported. */
static bool service_is_seen(struct harness *h, const char *dir)
{
	pid_t pid = harness_spawn("t-service", "sleep", dir);

	harness_kill(pid);
	harness_drain(h);
	return harness_events(h, EVENT_EXEC, (uint32_t)pid, NULL) == 1 &&
	       harness_events(h, EVENT_EXIT, (uint32_t)pid, NULL) == 1;
}

static int rename_often(void *context)
{
	for (int i = 0; i < 200; i++) {
		prctl(PR_SET_NAME, FLOODER);
		prctl(PR_SET_NAME, "t-ebb");
	}
	return 0;
}

/* Of 400 renames within a second four are reported; the service's start, behind them, is. */
static void renamer_is_limited(void **state)
{
	struct harness *h = begin(16384);
	uint64_t begun_ns = harness_now_ns();
	struct totals totals;
	size_t told;
	uint32_t pid = (uint32_t)harness_fork(rename_often, NULL);

	assert_true(service_is_seen(h, NULL));
	told = harness_events(h, EVENT_RENAME, pid, NULL) +
	       harness_events(h, EVENT_UNNAME, pid, NULL);
	assert_in_range(told, LIMIT_EVENTS,
			LIMIT_EVENTS * (2 + (harness_now_ns() - begun_ns) / 1000000000));
	totals = harness_totals(h);
	assert_true(totals.events_limited > 100);
	assert_int_equal(totals.events_lost, 0);
	harness_free(h);
}

static void hold_name(void *context)
{
	const int *fd = context;

	rename_often(NULL);
	prctl(PR_SET_NAME, FLOODER);
	if (write(*fd, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* An unreported process is in `targets` all the same, marked as unknown to the consumer. */
static void state_is_right_untold(void **state)
{
	struct harness *h = begin(16384);
	struct target target = {};
	int held[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(held, O_CLOEXEC), 0);
	pid = harness_start(hold_name, &held[1], h->group);
	close(held[1]);
	assert_int_equal(read(held[0], &byte, 1), 1);
	close(held[0]);
	assert_true(harness_target(h, pid, &target));
	assert_int_equal(target.flags & (TARGET_MATCHED | TARGET_REPORTED), TARGET_MATCHED);
	assert_int_equal(target.rule, 1);
	harness_kill(pid);
	harness_drain(h);
	/* The consumer never heard of it in the end: it has nothing to let go. */
	assert_int_equal(harness_events(h, EVENT_EXIT, (uint32_t)pid, NULL), 0);
	harness_free(h);
}

/* Thousands of forks by one user leave most of the ring to the others. */
static void user_has_a_quota(void **state)
{
	uint32_t ring = 32768;
	struct harness *h = begin(ring);
	struct flood f = { .uid = FLOODER_UID, .uids = 1, .count = 2000 };
	const struct event *event = NULL;
	struct totals totals;
	size_t told;

	harness_fork(flood, &f);
	assert_true(service_is_seen(h, NULL));
	told = harness_events(h, EVENT_FORK, 0, &event);
	assert_in_range(told, 1, ring / 16 / RECORD_BYTES);
	assert_int_equal(event->uid, FLOODER_UID);
	totals = harness_totals(h);
	assert_int_equal(totals.events_lost, 0);
	assert_true(totals.events_over_quota >= 2000 - told);
	/* A process without a reported start has no reported end. */
	assert_in_range(harness_events(h, EVENT_EXIT, 0, NULL), 1, told + 2);
	harness_free(h);
}

/* A window lasts until the consumer has drained it: then the same user is heard again. */
static void quota_comes_back(void **state)
{
	struct harness *h = begin(32768);
	struct flood f = { .uid = FLOODER_UID, .uids = 1, .count = 100 };
	size_t first;

	harness_fork(flood, &f);
	harness_sleep_ms(WINDOW_MS);
	harness_fork(flood, &f);
	harness_drain(h);
	first = harness_events(h, EVENT_FORK, 0, NULL);
	assert_in_range(first, 1, 32768 / 16 / RECORD_BYTES);
	harness_fork(flood, &f);
	harness_drain(h);
	assert_true(harness_events(h, EVENT_FORK, 0, NULL) > first);
	harness_free(h);
}

/* A user with many user numbers has one cgroup of the second level. */
static void many_numbers_are_one_cgroup(void **state)
{
	uint32_t ring = 16384;
	struct harness *h = begin(ring);
	struct flood f = { .uid = FLOODER_UID, .uids = 40, .count = 40 };
	char flooded[4096], other[4096];

	harness_group(h, "flooded", flooded);
	harness_group(h, "other", other);
	f.dir = flooded;
	harness_fork(flood, &f);
	harness_drain(h);
	assert_in_range(harness_events(h, EVENT_FORK, 0, NULL), 1, ring / 8 / RECORD_BYTES);
	assert_true(service_is_seen(h, other));
	assert_int_equal(harness_totals(h).events_lost, 0);
	harness_free(h);
}

#define HERD 40

/* Ends fill half of the ring, lesser kinds a quarter; a start has the rest. */
static void lesser_kinds_leave_room(void **state)
{
	struct harness *h = begin(4096);
	pid_t pids[HERD];
	struct totals totals;
	uint32_t pid;

	for (size_t i = 0; i < HERD; i++) {
		pids[i] = harness_spawn(FLOODER, "sleep", NULL);
		harness_drain(h);
		harness_sleep_ms(i % 2 ? WINDOW_MS : 0);
	}
	assert_int_equal(harness_events(h, EVENT_EXEC, 0, NULL), HERD);
	for (size_t i = 0; i < HERD; i++)
		harness_kill(pids[i]);
	pid = (uint32_t)harness_fork(rename_often, NULL);
	pids[0] = harness_spawn("t-service", "sleep", NULL);
	harness_drain(h);
	totals = harness_totals(h);
	assert_in_range(harness_events(h, EVENT_EXIT, 0, NULL), 2048 / RECORD_BYTES,
			2048 / RECORD_BYTES + 1);
	assert_int_equal(harness_events(h, EVENT_RENAME, pid, NULL), 0);
	assert_true(totals.events_shed >= HERD - 2048 / RECORD_BYTES);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)pids[0], NULL), 1);
	assert_int_equal(totals.events_lost, 0);
	harness_free(h);
}

/* A full ring is counted and reported, for any filler. */
static void full_ring_is_counted(void **state)
{
	struct harness *h = begin(4096);
	char dir[4096], name[32];
	struct totals totals;

	for (int i = 0; i < 30; i++) {
		struct flood f = { .dir = dir, .uid = FLOODER_UID, .uids = 1, .count = 3 };

		snprintf(name, sizeof(name), "group%d", i);
		harness_group(h, name, dir);
		harness_fork(flood, &f);
	}
	harness_drain(h);
	totals = harness_totals(h);
	assert_true(totals.events_lost > 0);
	assert_int_equal(totals.events, h->events.count);
	assert_in_range(harness_errors(h, ERROR_EVENTS_FULL), 1, 4);
	harness_free(h);
}

/* A cgroup that fills and empties all the time is reported four times a second. */
static void cgroup_is_limited(void **state)
{
	struct harness *h = begin(16384);
	uint64_t begun_ns = harness_now_ns();
	char dir[4096];
	size_t told;

	harness_watch(h, harness_group(h, "flapping", dir), 0, SLOT_IDLE, 0);
	for (int i = 0; i < 30; i++) {
		struct flood f = { .dir = dir, .uid = FLOODER_UID, .uids = 1 };

		harness_fork(flood, &f);
	}
	harness_drain(h);
	told = harness_events(h, EVENT_POPULATED, 0, NULL) +
	       harness_events(h, EVENT_EMPTY, 0, NULL);
	assert_in_range(told, LIMIT_EVENTS,
			LIMIT_EVENTS * (2 + (harness_now_ns() - begun_ns) / 1000000000));
	assert_true(harness_totals(h).events_limited > 0);
	harness_free(h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(renamer_is_limited),
		cmocka_unit_test(state_is_right_untold),
		cmocka_unit_test(user_has_a_quota),
		cmocka_unit_test(quota_comes_back),
		cmocka_unit_test(many_numbers_are_one_cgroup),
		cmocka_unit_test(lesser_kinds_leave_room),
		cmocka_unit_test(full_ring_is_counted),
		cmocka_unit_test(cgroup_is_limited),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
