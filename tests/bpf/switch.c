/* SPDX-License-Identifier: BSD-2-Clause */
/* switch.c: context switches of a watched cgroup, against the kernel's own count of them. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"

HARNESS_LOADS("count_switches");

#define SLOT  7
#define TIMES 200

#define ANSWER_MS 30 /* more than a jiffy, in which the kernel side keeps its answers */

struct fixture {
	struct harness *h;
	struct bpf_link *link;
	char dir[4096];
	uint64_t id;
};

static struct fixture begin(uint32_t state, uint32_t flags)
{
	struct fixture f = { .h = harness_new(NULL) };

	f.id = harness_group(f.h, "switch", f.dir);
	harness_watch(f.h, f.id, SLOT, state, flags);
	f.h->control->heartbeat_ns = harness_now_ns();
	f.h->control->stale_ns = 60000000000u;
	f.link = bpf_program__attach(f.h->skel->progs.count_switches);
	assert_non_null(f.link);
	return f;
}

static void end(struct fixture *f)
{
	bpf_link__destroy(f->link);
	harness_free(f->h);
}

static struct slot_switches counted(const struct harness *h)
{
	struct slot_switches each[HARNESS_CPUS] = { 0 }, sum = { 0 };
	uint32_t slot = SLOT;

	assert_true(libbpf_num_possible_cpus() <= HARNESS_CPUS);
	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(h->skel->maps.switches), &slot, each), 0);
	for (int i = 0; i < libbpf_num_possible_cpus(); i++) {
		sum.voluntary += each[i].voluntary;
		sum.involuntary += each[i].involuntary;
	}
	return sum;
}

static bool join(const char *dir)
{
	char path[4200];
	FILE *procs;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	procs = fopen(path, "we");
	return procs && fprintf(procs, "%d", getpid()) > 0 && fclose(procs) == 0;
}

/* Within the counts read before and after: what happens between two reads may be in either. */
static bool within(uint64_t n, uint64_t low, uint64_t high)
{
	return low <= n && n <= high;
}

/*
 * In the watched group: sleeps, and yields beside processes that want the CPU too. The program's
 * count is between the kernel's counts right before and right after each look at the map.
 */
static int gives_way(void *context)
{
	struct fixture *f = context;
	struct slot_switches first, last;
	struct rusage a, b, c, d;

	if (!join(f->dir))
		return -1;
	getrusage(RUSAGE_SELF, &a);
	first = counted(f->h);
	getrusage(RUSAGE_SELF, &b);
	for (int i = 0; i < TIMES; i++) {
		usleep(100);
		sched_yield();
	}
	getrusage(RUSAGE_SELF, &c);
	last = counted(f->h);
	getrusage(RUSAGE_SELF, &d);
	/* A thread that is preempted before it sleeps may find its timer over: then it does not. */
	if (c.ru_nvcsw - b.ru_nvcsw < TIMES / 2 || c.ru_nivcsw == b.ru_nivcsw)
		return -2;
	if (!within(last.voluntary - first.voluntary, (uint64_t)(c.ru_nvcsw - b.ru_nvcsw),
		    (uint64_t)(d.ru_nvcsw - a.ru_nvcsw)))
		return -3;
	return within(last.involuntary - first.involuntary, (uint64_t)(c.ru_nivcsw - b.ru_nivcsw),
		      (uint64_t)(d.ru_nivcsw - a.ru_nivcsw))
		       ? 0
		       : -4;
}

static void counts_what_the_kernel_counts(void **state)
{
	struct fixture f = begin(SLOT_RECORDER, 0);

	for (int i = 0; i < 2 * libbpf_num_possible_cpus(); i++)
		harness_spawn("t-burn", "burn", NULL);
	harness_fork(gives_way, &f);
	end(&f);
}

static int sleeps(void *context)
{
	const struct fixture *f = context;

	if (!join(f->dir))
		return -1;
	for (int i = 0; i < 20; i++)
		usleep(100);
	return 0;
}

/* How many switches of a process that sleeps twenty times were counted. */
static uint64_t of_sleeper(struct fixture *f)
{
	struct slot_switches before, after;

	harness_sleep_ms(ANSWER_MS);
	before = counted(f->h);
	harness_fork(sleeps, f);
	after = counted(f->h);
	return after.voluntary + after.involuntary - before.voluntary - before.involuntary;
}

static void each_gate_closes(void **state)
{
	struct fixture f = begin(SLOT_CAPTURE, 0);
	int watches = bpf_map__fd(f.h->skel->maps.watches);
	struct control *c = f.h->control;

	assert_true(of_sleeper(&f) >= 20);
	c->armed = 0;
	assert_int_equal(of_sleeper(&f), 0);
	c->armed = 1;
	f.h->slots[SLOT].state = SLOT_IDLE;
	assert_int_equal(of_sleeper(&f), 0);
	f.h->slots[SLOT].state = SLOT_CAPTURE;
	c->heartbeat_ns -= 2 * c->stale_ns;
	assert_int_equal(of_sleeper(&f), 0);
	c->heartbeat_ns = harness_now_ns();
	f.h->slots[SLOT].flags = SLOT_BY_PROCESS;
	assert_int_equal(of_sleeper(&f), 0);
	f.h->slots[SLOT].flags = 0;
	assert_true(of_sleeper(&f) >= 20);
	assert_int_equal(bpf_map_delete_elem(watches, &f.id), 0);
	assert_int_equal(of_sleeper(&f), 0);
	end(&f);
}

/* The consumer writes slots and watches: a number beyond the maps must not count anywhere. */
static void a_slot_that_is_none(void **state)
{
	struct fixture f = begin(SLOT_CAPTURE, 0);
	uint32_t beyond = 0xfffffff0;

	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(f.h->skel->maps.watches), &f.id, &beyond, BPF_ANY),
		0);
	assert_int_equal(of_sleeper(&f), 0);
	end(&f);
}

static void by_process_counts_the_matched(void **state)
{
	struct fixture f = begin(SLOT_CAPTURE, SLOT_BY_PROCESS);
	struct slot_switches first;
	pid_t pid;

	pid = harness_spawn("t-churn", "churn", f.dir);
	harness_sleep_ms(50);
	first = counted(f.h);
	assert_int_equal(first.voluntary + first.involuntary, 0);
	harness_target_set(f.h, pid, TARGET_MATCHED);
	/* On each CPU: it must give way to one of them. */
	for (int i = 0; i < libbpf_num_possible_cpus(); i++)
		harness_spawn("t-burn", "burn", f.dir);
	for (int i = 0; i < 100 && counted(f.h).involuntary + counted(f.h).voluntary == 0; i++)
		harness_sleep_ms(50);
	assert_true(counted(f.h).involuntary + counted(f.h).voluntary > 0);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_what_the_kernel_counts),
		cmocka_unit_test(each_gate_closes),
		cmocka_unit_test(a_slot_that_is_none),
		cmocka_unit_test(by_process_counts_the_matched),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
