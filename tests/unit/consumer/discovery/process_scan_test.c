/* SPDX-License-Identifier: BSD-2-Clause */
/* A scan that cannot read everything: the watches that it ends and makes, and its lines. */
#include "tests/unit/consumer/testing/group_testing.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/discovery/match_queue.h"
#include "consumer/discovery/process_scan.h"

static int setup(void **state)
{
	group_begin("scan");
	/* The scans read them as another user. */
	if (fake && (chmod(fake->dir, 0755) < 0 || chmod(fake->vmas, 0644) < 0))
		return -1;
	return 0;
}

static struct watch *watch_here(void)
{
	return idmap_get(&fake->a.watches.by_cgroup, group.id);
}

/* A rule by cgroup for this test's own one: other tests have theirs beside it. */
static void apply_by_cgroup(void)
{
	char json[256];

	snprintf(
		json, sizeof(json),
		"{\"version\":1,\"rules\":[{\"name\":\"all\",\"match\":{\"cgroup_prefix\":\"%s\"}}]}",
		group.path);
	fake_rules(fake, json);
}

static void set_mode(const char *file, mode_t mode)
{
	char name[4300];

	snprintf(name, sizeof(name), "%s/%s", group.directory, file);
	assert_int_equal(chmod(name, mode), 0);
}

/* The consumer's user has only the rights of the modes. */
static void scan(void)
{
	assert_int_equal(seteuid(65534), 0);
	fake_scan(fake);
	assert_int_equal(seteuid(0), 0);
}

/* A watch of the rule by cgroup: nothing but the cgroup's own files keeps it. */
static void see_populated(void)
{
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	apply_by_cgroup();
	fake_cgroup_event(fake, EVENT_POPULATED, group.id, group.path);
	assert_non_null(watch_here());
}

/* Ends the process of the cgroup; the kernel lets go of it a moment later. */
static void leave_empty(void)
{
	fake_cgroup_empty(&group);
	for (int i = 0; i < 1000 && cgroups_occupied(&fake->a.cgroups, group.path) != 0; i++)
		usleep(1000);
}

/* The owner of a cgroup closes it, or its list of processes: that ends no watch. */
static void closed_stays(const char *file, mode_t closed, mode_t open)
{
	see_populated();
	set_mode(file, closed);
	scan();
	scan();
	assert_non_null(watch_here());
	assert_int_equal(fake_count(fake, "watch.stop"), 0);
	assert_int_equal(fake->a.cgroups.unknown.count, 1);
	assert_int_equal(fake->a.cgroups.unknown.error, -EACCES);
	assert_string_equal(fake->a.cgroups.unknown.example, group.path);
	/* One that is opened again is read again. */
	set_mode(file, open);
	leave_empty();
	scan();
	assert_null(watch_here());
	assert_int_equal(fake->a.cgroups.unknown.count, 0);
}

static void test_closed_directory(void **state)
{
	if (!fake)
		skip();
	closed_stays("", 0700, 0755);
}

static void test_closed_list(void **state)
{
	if (!fake)
		skip();
	closed_stays("cgroup.events", 0600, 0644);
}

/* A rule by cgroup takes one that is closed: it may be occupied. An empty one it does not take. */
static void test_closed_is_taken(void **state)
{
	if (!fake)
		skip();
	set_mode("", 0700);
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	assert_int_equal(seteuid(65534), 0);
	apply_by_cgroup();
	assert_int_equal(seteuid(0), 0);
	assert_non_null(watch_here());
	assert_true(fake->a.cgroups.left.unread.count >= 1);
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	scan();
	set_mode("", 0755);
	leave_empty();
	apply_by_cgroup();
	assert_null(watch_here());
}

/*
 * The kernel's list of a cgroup outweighs a file of it: a watch that a scan ended would be made
 * again by the scan that its end asks for, ten times a second.
 */
static void test_listed_stays(void **state)
{
	struct task_record task;
	struct watch *w;

	if (!fake)
		skip();
	task = (struct task_record){
		.tgid = (uint32_t)group.pid,
		.start_ns = fake_start_ns((uint32_t)group.pid),
		.cgroup_id = group.id,
		.comm = "node",
	};
	fake_tasks(fake, &task, 1);
	see_populated();
	w = watch_here();
	/* There is no process by cgroup.procs, and by its path it is no cgroup at all. */
	leave_empty();
	strcpy(w->path + 1, "gone");
	for (int i = 0; i < 5; i++)
		scan();
	assert_ptr_equal(watch_here(), w);
	assert_int_equal(fake_count(fake, "watch.start"), 1);
	assert_int_equal(fake_count(fake, "watch.stop"), 0);
	/* Once the kernel lists none the files decide. */
	fake_tasks(fake, NULL, 0);
	scan();
	assert_null(watch_here());
}

#define LISTED 100000u /* records; to take so many lasts several parts */

static struct process *known(uint32_t tgid)
{
	return process_find(&fake->a.processes, tgid, fake_start_ns(tgid));
}

/* Makes the iterator list the process 100 very often, and 101 at the end. */
static void list_many(void)
{
	struct task_record *tasks = calloc(LISTED, sizeof(*tasks));

	assert_non_null(tasks);
	for (uint32_t i = 0; i < LISTED; i++) {
		uint32_t tgid = i < LISTED - 1 ? 100 : 101;

		tasks[i] = (struct task_record){ .tgid = tgid,
						 .start_ns = fake_start_ns(tgid),
						 .cgroup_id = group.id,
						 .comm = "node" };
	}
	fake_tasks(fake, tasks, LISTED);
	free(tasks);
}

#define NODE "{\"version\":1,\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"}}]}"

/*
 * A scan ends with its time and goes on in the next turn: it misses no late entry of the list,
 * drops unlisted processes, and keeps those that began in the meantime, which its list cannot have.
 */
static void test_in_parts(void **state)
{
	struct discovery *d = &fake->a.discovery;
	unsigned int parts = 1;

	if (!fake)
		skip();
	fake_rules(fake, NODE);
	fake_event(fake, EVENT_FORK, 102, group.id, "node");
	list_many();
	process_scan_ask(d);
	assert_int_equal(process_scan_step(d), 0);
	assert_true(process_scan_runs(d));
	assert_null(known(101));
	fake_event(fake, EVENT_FORK, 103, group.id, "node");
	for (; process_scan_runs(d); parts++)
		assert_int_equal(process_scan_step(d), 0);
	assert_true(parts > 2);
	assert_non_null(known(100));
	assert_non_null(known(101));
	assert_true(known(102)->gone_ns);
	assert_false(known(103)->gone_ns);
	while (d->matches.first)
		match_queue_step(d);
	assert_int_equal(fake_count(fake, "process.match"), 4);
}

/* New rules in the midst of a scan: the scan by them begins anew, and watches of the old ones end.
 */
static void test_new_rules_meanwhile(void **state)
{
	struct discovery *d = &fake->a.discovery;
	uint64_t number;

	if (!fake)
		skip();
	fake_rules(fake, NODE);
	fake_event(fake, EVENT_FORK, 100, group.id, "node");
	assert_non_null(watch_here());
	list_many();
	process_scan_ask(d);
	assert_int_equal(process_scan_step(d), 0);
	assert_true(process_scan_runs(d));
	number = d->scan.number;
	fake_rules(fake, "{\"version\":1,\"rules\":[]}");
	assert_int_equal(d->scan.number, number + 1);
	assert_null(watch_here());
	assert_int_equal(fake_count(fake, "process.left"), 1);
	assert_null(known(101));
}

/* A request while a scan runs gets one of its own after it. */
static void test_requested_during_a_scan(void **state)
{
	struct discovery *d = &fake->a.discovery;
	uint64_t number;

	if (!fake)
		skip();
	fake_rules(fake, NODE);
	list_many();
	number = d->scan.number;
	process_scan_ask(d);
	assert_int_equal(process_scan_step(d), 0);
	process_scan_ask(d);
	assert_int_equal(d->scan.number, number + 1);
	fake_scan(fake);
	assert_int_equal(d->scan.number, number + 2);
}

static bool put(const char *directory, const char *file, const char *text)
{
	char name[4300];
	FILE *f;
	bool fine;

	snprintf(name, sizeof(name), "%s/%s", directory, file);
	f = fopen(name, "we");
	if (!f)
		return false;
	fine = fputs(text, f) >= 0;
	return fclose(f) == 0 && fine;
}

/* Only an empty cgroup becomes a threaded one. */
static bool make_threaded(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", group.pid);
	return put(fake->a.host.cgroup2, "cgroup.procs", pid) &&
	       put(group.directory, "cgroup.type", "threaded") &&
	       put(group.directory, "cgroup.procs", pid);
}

/* A threaded cgroup has no list of processes. */
static void test_threaded_stays(void **state)
{
	if (!fake)
		skip();
	if (!make_threaded()) {
		print_message("no threaded cgroup can be made here: %s\n", strerror(errno));
		skip();
	}
	see_populated();
	scan();
	scan();
	assert_non_null(watch_here());
	assert_int_equal(fake->a.cgroups.unknown.count, 0);
	leave_empty();
	scan();
	assert_null(watch_here());
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_TESTS(process_scan)
{
	const struct CMUnitTest tests[] = {
		EACH(test_closed_directory),
		EACH(test_closed_list),
		EACH(test_closed_is_taken),
		EACH(test_listed_stays),
		EACH(test_in_parts),
		EACH(test_new_rules_meanwhile),
		EACH(test_requested_during_a_scan),
		EACH(test_threaded_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
