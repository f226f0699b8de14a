/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scope.c: what a taken-over consumer sees of cgroups that root has left out: nothing. It writes
 * any words into `watches`, `targets` and the tries; samples, switches, events and all three
 * iterators stay within the prefixes.
 */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample_fixture.h"

#define OUTSIDE 6 /* slot */

/* Two groups, each with a burning process of the same name; the second is outside. */
struct pair {
	struct harness *h;
	char dir[2][4096];
	uint64_t id[2];
	pid_t pid[2];
};

static void scope_add(struct harness *h, const char *name)
{
	char prefix[4200];

	snprintf(prefix, sizeof(prefix), "%s/%s", h->path, name);
	harness_scope(h, prefix);
}

static struct pair begin(void)
{
	const struct harness_options options = { .scoped = true };
	struct pair p = { .h = harness_new(&options) };

	scope_add(p.h, "in");
	harness_rule(p.h, 0, "t-", false, 1, 1);
	harness_cgroup_rule(p.h, 0, p.h->path, 2);
	p.h->control->generation = 1;
	for (int i = 0; i < 2; i++) {
		p.id[i] = harness_group(p.h, i ? "out" : "inside", p.dir[i]);
		p.pid[i] = harness_spawn("t-burn", "burn", p.dir[i]);
		harness_watch(p.h, p.id[i], i ? OUTSIDE : SLOT, SLOT_CAPTURE, 0);
	}
	return p;
}

static void end(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		harness_kill(p->pid[i]);
	harness_free(p->h);
}

static void samples_stay_within(void **state)
{
	struct pair p = begin();
	size_t inside = 0;

	harness_tick(p.h, HZ);
	sample_await(p.h, 50);
	sample_stop(p.h);
	harness_drain(p.h);
	for (size_t i = 0; i < p.h->samples.count; i++) {
		assert_int_equal(sample_at(p.h, i)->tgid, p.pid[0]);
		inside++;
	}
	assert_true(inside > 0);
	assert_int_equal(harness_counters(p.h, OUTSIDE).attempted, 0);
	end(&p);
}

/* Whose CPU time is counted by name: what is outside is one number. */
static void neighbours_stay_within(void **state)
{
	struct pair p = begin();
	int fd = bpf_map__fd(p.h->skel->maps.neighbours);
	struct neighbour found;

	p.h->control->sessions = 1;
	harness_tick(p.h, HZ);
	sample_await(p.h, 50);
	for (int i = 0; i < WAIT_MS / 10 && !harness_totals(p.h).neighbours_hidden_ns; i++)
		harness_sleep_ms(10);
	sample_stop(p.h);
	assert_true(harness_totals(p.h).neighbours_hidden_ns > 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &p.id[0], &found), 0);
	assert_int_equal(found.tgid, p.pid[0]);
	assert_true(bpf_map_lookup_elem(fd, &p.id[1], &found) < 0);
	end(&p);
}

/* Pids that an iterator names, of the two. */
static unsigned int listed(const struct pair *p, struct bpf_program *program, size_t record_bytes,
			   size_t tgid_at)
{
	unsigned int found = 0;
	char *bytes = NULL;
	size_t n = harness_read(program, &bytes);

	for (size_t at = 0; at + record_bytes <= n;) {
		uint32_t tgid;

		memcpy(&tgid, bytes + at + tgid_at, sizeof(tgid));
		for (int i = 0; i < 2; i++)
			found |= tgid == (uint32_t)p->pid[i] ? 1u << i : 0;
		at += record_bytes;
		if (program == p->h->vmas)
			at += ((struct mapping_record *)(bytes + at - record_bytes))->path_bytes;
	}
	free(bytes);
	return found;
}

static void move(pid_t pid, const char *dir)
{
	char path[4200];
	FILE *procs;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	procs = fopen(path, "we");
	assert_non_null(procs);
	assert_true(fprintf(procs, "%d\n", pid) > 0);
	assert_int_equal(fclose(procs), 0);
}

/* Whether the kernel side fills a table with the mappings of `pid`. */
static bool filled(const struct pair *p, const struct process_key *key)
{
	struct unwind_claims claims = { .tgid = key->tgid, .start_ns = key->start_ns };
	char *bytes = NULL;
	uint32_t zero = 0;
	size_t n;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(p->h->skel->maps.unwind_claims), &zero,
					     &claims, BPF_ANY),
			 0);
	n = harness_read(p->h->skel->progs.ranges, &bytes);
	free(bytes);
	return n > 0;
}

/* Also of a process that the consumer has known, and names in `targets`, before it left. */
static void iterators_stay_within(void **state)
{
	struct pair p = begin();
	struct target target = { .flags = TARGET_MATCHED };
	struct process_key key;

	harness_kill(p.pid[1]);
	p.pid[1] = harness_spawn("t-burn", "burn", p.dir[0]);
	key = (struct process_key){ .tgid = (uint32_t)p.pid[1],
				    .start_ns = harness_start_ns(p.h, p.pid[1]) };
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(p.h->skel->maps.targets), &key, &target, BPF_ANY),
		0);
	assert_true(filled(&p, &key));
	assert_int_equal(listed(&p, p.h->vmas, sizeof(struct mapping_record),
				offsetof(struct mapping_record, tgid)),
			 3);
	move(p.pid[1], p.dir[1]);
	assert_false(filled(&p, &key));
	assert_int_equal(listed(&p, p.h->skel->progs.tasks, sizeof(struct task_record),
				offsetof(struct task_record, tgid)),
			 1);
	assert_int_equal(listed(&p, p.h->vmas, sizeof(struct mapping_record),
				offsetof(struct mapping_record, tgid)),
			 1);
	end(&p);
}

/* Takes a name that a rule matches, and has a child. */
static void rename_and_fork(void *context)
{
	pid_t pid;

	prctl(PR_SET_NAME, "t-renamed");
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	pause();
}

/* A process that the consumer has known, and that ends outside. */
static pid_t end_outside(const struct pair *p)
{
	pid_t pid = harness_spawn("t-sleep", "sleep", p->dir[0]);

	harness_target_set(p->h, pid, TARGET_MAPPED);
	move(pid, p->dir[1]);
	/* The earlier reports were about one inside. */
	harness_drain(p->h);
	harness_forget(p->h);
	harness_kill(pid);
	return pid;
}

static void events_stay_within(void **state)
{
	struct pair p = begin();
	const struct event *event;
	pid_t pid[2], renamed[2], ended;
	char dir[4096];

	harness_discover(p.h);
	ended = end_outside(&p);
	for (int i = 0; i < 2; i++) {
		pid[i] = harness_spawn("t-sleep", "sleep", p.dir[i]);
		harness_kill(pid[i]);
		renamed[i] = harness_start(rename_and_fork, NULL, p.dir[i]);
		harness_sleep_ms(50);
		harness_kill(renamed[i]);
	}
	harness_group(p.h, "inside2", dir);
	harness_group(p.h, "out2", dir);
	harness_sleep_ms(50);
	harness_drain(p.h);
	assert_true(harness_events(p.h, EVENT_EXEC, (uint32_t)pid[0], NULL) > 0);
	assert_true(harness_events(p.h, EVENT_EXIT, (uint32_t)pid[0], NULL) > 0);
	assert_true(harness_events(p.h, EVENT_RENAME, (uint32_t)renamed[0], NULL) > 0);
	assert_true(harness_events(p.h, EVENT_FORK, 0, NULL) > 0);
	assert_int_equal(harness_events(p.h, EVENT_EXIT, (uint32_t)ended, NULL), 0);
	for (size_t i = 0; i < p.h->events.count; i++) {
		event = p.h->events.records[i];
		assert_true(event->tgid != (uint32_t)pid[1] && event->tgid != (uint32_t)p.pid[1]);
		assert_true(event->tgid != (uint32_t)renamed[1]);
		assert_true(event->cgroup_id != p.id[1]);
	}
	assert_int_equal(harness_events(p.h, EVENT_MKDIR, 0, &event), 1);
	assert_non_null(strstr(event->path, "/inside2"));
	end(&p);
}

#define SWITCHES 10 /* that are waited for: by then the other process has as many */

static void switches_stay_within(void **state)
{
	struct pair p = begin();
	struct bpf_link *link;
	struct slot_switches counts[HARNESS_CPUS];
	uint64_t sum[2] = { 0 };
	cpu_set_t first;

	/* On one CPU each gives way to the other. */
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sched_setaffinity(p.pid[i], sizeof(first), &first), 0);
	p.h->control->heartbeat_ns = harness_now_ns();
	p.h->control->stale_ns = 60000000000u;
	link = bpf_program__attach(p.h->skel->progs.count_switches);
	assert_non_null(link);
	for (int tries = 0; tries < 300 && sum[0] < SWITCHES; tries++) {
		harness_sleep_ms(10);
		sum[0] = sum[1] = 0;
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t slot = i ? OUTSIDE : SLOT;

			assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(p.h->skel->maps.switches),
							     &slot, counts),
					 0);
			for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
				sum[i] += counts[cpu].voluntary + counts[cpu].involuntary;
		}
	}
	bpf_link__destroy(link);
	assert_true(sum[0] >= SWITCHES);
	assert_int_equal(sum[1], 0);
	end(&p);
}

static void accounts_stay_within(void **state)
{
	struct pair p = begin();
	struct bpf_link *link;
	struct thread_times a;
	cpu_set_t first;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(sched_setaffinity(p.pid[i], sizeof(first), &first), 0);
		p.h->slots[i ? OUTSIDE : SLOT].session = 1;
	}
	p.h->control->heartbeat_ns = harness_now_ns();
	p.h->control->stale_ns = 60000000000u;
	link = bpf_program__attach(p.h->skel->progs.account_switch);
	assert_non_null(link);
	for (int tries = 0; tries < 300 && !harness_account(p.h, p.pid[0], &a); tries++)
		harness_sleep_ms(10);
	harness_sleep_ms(100);
	bpf_link__destroy(link);
	assert_true(harness_account(p.h, p.pid[0], &a));
	assert_false(harness_account(p.h, p.pid[1], &a));
	assert_int_equal(listed(&p, p.h->skel->progs.account_threads, sizeof(struct account_record),
				offsetof(struct account_record, head.account.tgid)),
			 1);
	end(&p);
}

/* A prefix is compared with the whole path, however deep or long it is. */
static void paths_are_whole(void **state)
{
	const struct harness_options options = { .scoped = true };
	struct harness *h = harness_new(&options);
	char dir[4096], name[201];
	uint64_t id[3];
	pid_t pid[3];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	scope_add(h, "a/b/c");
	scope_add(h, name);
	harness_group(h, "a", dir);
	harness_group(h, "a/b", dir);
	id[0] = harness_group(h, "a/b/cd", dir);
	pid[0] = harness_spawn("t-burn", "burn", dir);
	id[1] = harness_group(h, "a/b/d", dir);
	pid[1] = harness_spawn("t-burn", "burn", dir);
	harness_group(h, name, dir);
	snprintf(dir + strlen(dir), sizeof(dir) - strlen(dir), "/%s", name);
	assert_int_equal(mkdir(dir, 0755), 0);
	id[2] = harness_group_id(dir);
	pid[2] = harness_spawn("t-burn", "burn", dir);
	for (uint32_t i = 0; i < 3; i++)
		harness_watch(h, id[i], i, SLOT_CAPTURE, 0);
	harness_tick(h, HZ);
	for (int i = 0;
	     i < 1000 && (!harness_counters(h, 0).attempted || !harness_counters(h, 2).attempted);
	     i++)
		harness_sleep_ms(10);
	harness_sleep_ms(100);
	sample_stop(h);
	assert_true(harness_counters(h, 0).attempted > 0);
	assert_int_equal(harness_counters(h, 1).attempted, 0);
	assert_true(harness_counters(h, 2).attempted > 0);
	for (int i = 0; i < 3; i++)
		harness_kill(pid[i]);
	harness_free(h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_stay_within),	  cmocka_unit_test(iterators_stay_within),
		cmocka_unit_test(neighbours_stay_within), cmocka_unit_test(events_stay_within),
		cmocka_unit_test(switches_stay_within),	  cmocka_unit_test(accounts_stay_within),
		cmocka_unit_test(paths_are_whole),
	};

	harness_main(argc, argv);
	harness_load_mappings();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
