/* SPDX-License-Identifier: BSD-2-Clause */
/* discover.c: exec, fork, rename and exit as bpf/discovery/discover.bpf.c reports them. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

HARNESS_LOADS("on_*");

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

/* Spawns `name`, ends it again and drains; its pid. */
static pid_t run(struct harness *h, const char *name)
{
	pid_t pid = harness_spawn(name, "sleep", NULL);

	harness_kill(pid);
	harness_drain(h);
	return pid;
}

static void exec_exact_is_not_prefix(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;
	pid_t node, nodejs;

	harness_rule(h, 0, "node", true, 7, 3);
	node = run(h, "node");
	nodejs = run(h, "nodejs");
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)node, &event), 1);
	assert_int_equal(event->rule, 7);
	assert_int_equal(event->generation, 3);
	assert_int_equal(event->ppid, getpid());
	assert_int_equal(event->flags, EVENT_NEW_IMAGE);
	assert_string_equal(event->comm, "node");
	assert_int_equal(event->path_bytes, 0);
	assert_true(event->start_ns > 0 && event->cgroup_id > 0);
	assert_int_equal(event->uid, getuid());
	/* The rename inside execve is not reported separately. */
	assert_int_equal(harness_events(h, EVENT_RENAME, (uint32_t)node, NULL), 0);
	assert_int_equal(harness_events(h, EVENT_EXIT, (uint32_t)node, NULL), 1);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)nodejs, NULL), 0);
	assert_int_equal(harness_events(h, EVENT_EXIT, (uint32_t)nodejs, NULL), 0);
}

static void exec_prefix_and_longest_match(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;

	harness_rule(h, 0, "node", false, 1, 1);
	harness_rule(h, 0, "nodejs", true, 2, 1);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "node"), &event), 1);
	assert_int_equal(event->rule, 1);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "nodejs"), &event), 1);
	assert_int_equal(event->rule, 2);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "nod"), NULL), 0);
}

static void exec_fifteen_bytes(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;

	harness_rule(h, 0, "abcdefghijklmno", true, 5, 1);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "abcdefghijklmno"), &event),
			 1);
	assert_string_equal(event->comm, "abcdefghijklmno");
	/* The kernel cuts longer names to 15 bytes. */
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "abcdefghijklmnopq"), NULL),
			 1);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "abcdefghijklmn"), NULL),
			 0);
}

static void active_word_switches_tries(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;

	harness_rule(h, 0, "t-one", true, 1, 1);
	harness_rule(h, 1, "t-two", true, 2, 2);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "t-two"), NULL), 0);
	h->control->active = 1;
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "t-two"), &event), 1);
	assert_int_equal(event->generation, 2);
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "t-one"), NULL), 0);
	h->control->events_on = 0;
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "t-two"), NULL), 0);
}

static int fork_child(void *context)
{
	return 0;
}

static int fork_again(void *context)
{
	pid_t *ret_pids = context;
	pid_t pid;

	prctl(PR_SET_NAME, "t-parent");
	pid = fork();
	if (!pid)
		_exit(fork_child(NULL));
	ret_pids[0] = pid;
	return waitpid(pid, NULL, 0) != pid;
}

static void fork_is_inherited(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;
	pid_t unused[1], parent;

	harness_rule(h, 0, "t-parent", true, 4, 1);
	parent = harness_fork(fork_again, unused);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_FORK, 0, &event), 1);
	assert_int_equal(event->ppid, parent);
	assert_int_not_equal(event->tgid, parent);
	assert_int_equal(event->rule, 4);
	assert_string_equal(event->comm, "t-parent");
	assert_int_equal(harness_events(h, EVENT_EXIT, event->tgid, NULL), 1);
}

static void *thread_renames(void *context)
{
	prctl(PR_SET_NAME, "t-match");
	return NULL;
}

static int rename_all(void *context)
{
	pthread_t thread;

	/* A thread's name is not the process's, and a thread is not a fork. */
	if (pthread_create(&thread, NULL, thread_renames, NULL) || pthread_join(thread, NULL))
		return 1;
	prctl(PR_SET_NAME, "t-match");
	prctl(PR_SET_NAME, "t-match");
	prctl(PR_SET_NAME, "t-other");
	prctl(PR_SET_NAME, "t-again");
	prctl(PR_SET_NAME, "t-match2");
	return 0;
}

static void rename_and_unname(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;
	uint32_t pid;

	harness_rule(h, 0, "t-match", true, 1, 1);
	harness_rule(h, 0, "t-match2", true, 2, 1);
	pid = (uint32_t)harness_fork(rename_all, NULL);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_RENAME, pid, &event), 2);
	assert_string_equal(event->comm, "t-match");
	assert_int_equal(event->flags, 0);
	assert_int_equal(harness_events(h, EVENT_UNNAME, pid, &event), 1);
	assert_string_equal(event->comm, "t-other");
	assert_int_equal(event->flags, 0);
	assert_int_equal(event->rule, 1);
	assert_int_equal(harness_events(h, EVENT_EXIT, pid, &event), 1);
	assert_int_equal(event->rule, 2);
	assert_int_equal(harness_events(h, EVENT_FORK, 0, NULL), 0);
}

static int exec_away(void *context)
{
	prctl(PR_SET_NAME, "t-before");
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

static void exec_to_another_name(void **state)
{
	struct harness *h = *state;
	const struct event *event = NULL;
	uint32_t pid;

	harness_rule(h, 0, "t-before", true, 1, 1);
	pid = (uint32_t)harness_fork(exec_away, NULL);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_RENAME, pid, NULL), 1);
	assert_int_equal(harness_events(h, EVENT_UNNAME, pid, &event), 1);
	assert_string_equal(event->comm, "true");
	assert_int_equal(event->flags, EVENT_NEW_IMAGE);
	/* No longer matched nor mapped: its end is of no interest, but its entry must be gone. */
	assert_int_equal(harness_events(h, EVENT_EXIT, pid, NULL), 0);
}

static void exec_voids_mapped(void **state)
{
	struct harness *h = *state;
	struct target target;
	pid_t pid;

	harness_rule(h, 0, "t-exec", true, 6, 2);
	pid = harness_spawn("t-exec", "sleep", NULL);
	assert_true(harness_target(h, pid, &target));
	assert_int_equal(target.flags, TARGET_MATCHED | TARGET_REPORTED);
	assert_int_equal(target.rule, 6);
	assert_int_equal(target.generation, 2);
	harness_kill(pid);
}

static void *outlive_leader(void *context)
{
	harness_sleep_ms(200);
	_exit(0);
}

static int leader_first(void *context)
{
	pthread_t thread;

	prctl(PR_SET_NAME, "t-leader");
	if (pthread_create(&thread, NULL, outlive_leader, NULL))
		return 1;
	/* Not pthread_exit: it would unwind, and the sanitizers' runtime with it. */
	return (int)syscall(SYS_exit, 0);
}

static void exit_is_the_last_thread(void **state)
{
	struct harness *h = *state;
	const struct event *rename = NULL, *gone = NULL;
	uint32_t pid;

	harness_rule(h, 0, "t-leader", true, 1, 1);
	pid = (uint32_t)harness_fork(leader_first, NULL);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_RENAME, pid, &rename), 1);
	assert_int_equal(harness_events(h, EVENT_EXIT, pid, &gone), 1);
	assert_true(gone->time_ns - rename->time_ns > 150000000u);
	assert_int_equal(gone->start_ns, rename->start_ns);
}

static void full_table_is_counted(void **state)
{
	struct harness_options options = { .targets = 1 };
	struct harness *h = harness_new(&options);
	pid_t pids[8];

	harness_discover(h);
	harness_rule(h, 0, "t-many", true, 1, 1);
	for (size_t i = 0; i < 8; i++)
		pids[i] = harness_spawn("t-many", "sleep", NULL);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_EXEC, 0, NULL), 8);
	assert_true(harness_totals(h).targets_full > 0);
	assert_true(harness_errors(h, ERROR_TARGETS_FULL) > 0);
	for (size_t i = 0; i < 8; i++)
		harness_kill(pids[i]);
	harness_free(h);
}

/* A name that no rule matched is remembered, but only for that state of the tries. */
static void strangers_are_forgotten(void **state)
{
	struct harness *h = *state;
	cpu_set_t all, one;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	h->control->generation = 1;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			harness_events(h, EVENT_EXEC, (uint32_t)run(h, "t-stranger"), NULL), 0);
	/* Two pushes later the same trie is in force again. */
	harness_rule(h, 0, "t-stranger", true, 1, 3);
	h->control->generation = 3;
	h->control->active = 0;
	assert_int_equal(harness_events(h, EVENT_EXEC, (uint32_t)run(h, "t-stranger"), NULL), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/*
 * Found by a scan and entered by the consumer: no program has matched it, yet its exec is reported.
 */
static int exec_after_scan(void *context)
{
	struct harness *h = context;
	size_t bytes;
	char *records;

	prctl(PR_SET_NAME, "t-scanned");
	bytes = harness_read(h->skel->progs.tasks, &records);
	free(records);
	if (!bytes)
		return 1;
	harness_target_set(h, getpid(), TARGET_MATCHED | TARGET_MAPPED | TARGET_REPORTED);
	h->control->events_on = 1;
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

static void exec_of_a_scanned_process(void **state)
{
	struct harness *h = *state;
	uint32_t pid;

	h->control->events_on = 0;
	harness_rule(h, 0, "t-scanned", true, 1, 1);
	pid = (uint32_t)harness_fork(exec_after_scan, h);
	harness_drain(h);
	assert_int_equal(harness_events(h, EVENT_UNNAME, pid, NULL), 1);
	assert_int_equal(harness_events(h, EVENT_EXIT, pid, NULL), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(exec_exact_is_not_prefix),  T(exec_prefix_and_longest_match),
		T(exec_fifteen_bytes),	      T(active_word_switches_tries),
		T(fork_is_inherited),	      T(rename_and_unname),
		T(exec_to_another_name),      T(exec_voids_mapped),
		T(exit_is_the_last_thread),   T(strangers_are_forgotten),
		T(exec_of_a_scanned_process), cmocka_unit_test(full_table_is_counted),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
