/* SPDX-License-Identifier: BSD-2-Clause */
/* oom.c: the report of a process that the kernel kills because its memory cgroup has no more. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "memory_fixture.h"

HARNESS_LOADS("on_*");

#define SLOT	    6
#define LIMIT	    "16777216"
#define LIMIT_BYTES (16u << 20)
#define EATS_BYTES  (64u << 20)

struct fixture {
	struct harness *h;
	struct memory_group group;
};

static struct fixture begin(const struct harness_options *options)
{
	struct fixture f = { .h = harness_new(options) };

	if (!memory_make(f.h, "oom", LIMIT, &f.group)) {
		print_message("SKIP: the controller memory is in no cgroup hierarchy\n");
		harness_free(f.h);
		skip();
	}
	harness_watch(f.h, f.group.id, SLOT, SLOT_RECORDER, 0);
	f.h->control->heartbeat_ns = harness_now_ns();
	f.h->control->stale_ns = 60000000000u;
	f.h->skel->links.on_oom = bpf_program__attach(f.h->skel->progs.on_oom);
	assert_non_null(f.h->skel->links.on_oom);
	return f;
}

static void end(struct fixture *f)
{
	memory_remove(&f->group);
	harness_free(f->h);
}

/* Takes more than it may have. */
static void eat(void *context)
{
	char *memory;

	memory_join(context);
	prctl(PR_SET_NAME, "t-hungry");
	memory = mmap(NULL, EATS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		_exit(99);
	for (size_t at = 0; at < EATS_BYTES; at += 4096)
		((volatile char *)memory)[at] = 1;
	_exit(0); /* it was not killed */
}

/* Runs it to its end, which is a kill. Returns its pid. */
static pid_t kill_one(struct fixture *f)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		if (!memory_write(f->group.dir, "cgroup.procs", "0"))
			_exit(97);
		eat(&f->group);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		fail_msg("not killed: exit status %d", WEXITSTATUS(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	harness_drain(f->h);
	return pid;
}

/* The victim, its memory, and the cgroup with the limit. */
static void tells_of_the_victim(void **state)
{
	struct fixture f = begin(NULL);
	const struct event *e = NULL;
	const struct oom_victim *v;
	pid_t pid = kill_one(&f);
	long page = sysconf(_SC_PAGESIZE);

	assert_int_equal(harness_events(f.h, EVENT_OOM, (uint32_t)pid, &e), 1);
	assert_string_equal(e->comm, "t-hungry");
	assert_int_equal(e->cgroup_id, f.group.id);
	assert_int_equal(e->path_bytes, 0);
	v = (const struct oom_victim *)(e + 1);
	assert_int_equal(v->slot, SLOT);
	assert_int_equal(v->has_memory, 1);
	/* What is not its own in the cgroup is page tables and the like, and its counters lag. */
	assert_in_range((v->anon_pages + v->swap_pages) * (uint64_t)page, LIMIT_BYTES / 2,
			EATS_BYTES);
	assert_int_equal(v->asker_tgid, pid);
	assert_string_equal(v->asker_comm, "t-hungry");
	if (v->limit == OOM_LIMIT_UNKNOWN) {
		print_message("this kernel does not say whose limit it was\n");
	} else {
		assert_int_equal(v->limit, OOM_LIMIT_CGROUP);
		assert_int_equal(v->limit_level, 0);
		assert_int_equal(v->limit_pages * (uint64_t)page, LIMIT_BYTES);
		assert_string_equal(v->limit_name, f.group.name);
		assert_int_equal(v->limit_cgroup_id, f.group.v1[0] ? 0 : f.group.id);
	}
	end(&f);
}

/* For an unwatched group, and without a consumer, nothing is reported. */
static void is_silent(void **state)
{
	struct fixture f = begin(NULL);
	int watches = bpf_map__fd(f.h->skel->maps.watches);

	f.h->control->armed = 0;
	kill_one(&f);
	f.h->control->armed = 1;
	f.h->control->stale_ns = 1;
	kill_one(&f);
	f.h->control->stale_ns = 60000000000u;
	assert_int_equal(bpf_map_delete_elem(watches, &f.group.id), 0);
	kill_one(&f);
	assert_int_equal(harness_events(f.h, EVENT_OOM, 0, NULL), 0);
	end(&f);
}

/* Nor of one outside of the scope. */
static void keeps_to_the_scope(void **state)
{
	const struct harness_options scoped = { .scoped = true };
	struct fixture f = begin(&scoped);

	harness_scope(f.h, "/elsewhere");
	kill_one(&f);
	assert_int_equal(harness_events(f.h, EVENT_OOM, 0, NULL), 0);
	end(&f);
}

/* A storm of starts in the same place has spent its quota: the kill is reported all the same. */
static void is_not_hidden_by_starts(void **state)
{
	const struct harness_options small = { .events_bytes = 4096 };
	struct fixture f = begin(&small);
	pid_t pid;

	harness_discover(f.h);
	harness_rule(f.h, 0, "t-", false, 1, 1);
	for (int i = 0; i < 12; i++)
		harness_kill(harness_spawn("t-many", "sleep", f.group.dir));
	assert_true(harness_totals(f.h).events_over_quota > 0);
	pid = kill_one(&f);
	assert_int_equal(harness_events(f.h, EVENT_OOM, (uint32_t)pid, NULL), 1);
	end(&f);
}

/* But kills have a quota too: they do not fill the ring. */
static void has_a_quota(void **state)
{
	const struct harness_options small = { .events_bytes = 4096 };
	struct fixture f = begin(&small);
	uint64_t told;

	for (int i = 0; i < 6; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid && memory_write(f.group.dir, "cgroup.procs", "0"))
			eat(&f.group);
		waitpid(pid, NULL, 0);
	}
	harness_drain(f.h);
	told = harness_events(f.h, EVENT_OOM, 0, NULL);
	assert_in_range(told, 1, 4096 / 8 / sizeof(struct oom_victim) + 1);
	assert_int_equal(told + harness_totals(f.h).events_over_quota, 6);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_of_the_victim), cmocka_unit_test(is_silent),
		cmocka_unit_test(keeps_to_the_scope),  cmocka_unit_test(is_not_hidden_by_starts),
		cmocka_unit_test(has_a_quota),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
