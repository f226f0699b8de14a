/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inherit.c: children are walked by their parent's table from their first tick on, until they call
 * execve or have a table of their own, and only while it holds the filling that it held when they
 * were forked.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "unwind_fixture.h"

HARNESS_LOADS("on_*", "sampler", "ranges*");

#define PATIENCE 200 /* takes of 50 ms until a child has had its turn */

/* The actions of a fixture's child on request: it is this program, see main. */
#define FORKS	    SIGUSR2 /* the child burns on */
#define EXECS	    SIGHUP
#define VFORKS_EXEC SIGTERM /* the child burns before it calls execve */

static void on_exec(int signal)
{
	execl("/proc/self/exe", "t-again", "--child", "again", (char *)NULL);
	_exit(98);
}

static void on_fork(int signal)
{
	if (!fork())
		prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void on_vfork(int signal)
{
	pid_t pid = vfork();

	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < 10; i++)
		harness_burn();
	on_exec(signal);
}

/* The samples of one process, or of one of its images by the thread's name. */
struct account {
	size_t all, walked, by; /* that filling */
};

static struct account of(const struct fixture *f, pid_t pid, const char *comm, uint64_t fill)
{
	struct account a = { 0 };

	for (size_t i = 0; i < f->h->samples.count; i++) {
		const struct sample *s = f->h->samples.records[i];
		const uint64_t *frames = (const uint64_t *)(s + 1) + s->kernel_frames;

		if (s->tgid != (uint32_t)pid || (comm && strcmp(s->comm, comm) != 0))
			continue;
		a.all++;
		if (!(s->flags & SAMPLE_UNWOUND)) {
			assert_int_equal(s->table_generation, 0);
			continue;
		}
		assert_int_equal(s->user_frames, 1);
		assert_int_equal(s->stop_reason, UNWIND_END_COMPLETE);
		assert_true(is_executable(f, frames[0]));
		a.walked++;
		a.by += s->table_generation == (uint32_t)fill;
	}
	return a;
}

/* The process of the samples that is neither of these; 0: none. */
static pid_t another(const struct fixture *f, pid_t one, pid_t two)
{
	for (size_t i = 0; i < f->h->samples.count; i++) {
		pid_t pid = (pid_t)((const struct sample *)f->h->samples.records[i])->tgid;

		if (pid != one && pid != two)
			return pid;
	}
	return 0;
}

/* Ticks from before `pid` forks on request until its child has been sampled; who is the child. */
static pid_t fork_one(const struct fixture *f, pid_t pid, int signal)
{
	pid_t child = 0;

	harness_forget(f->h);
	harness_tick(f->h, HZ);
	assert_int_equal(kill(pid, signal), 0);
	for (int i = 0; i < PATIENCE && !child; i++) {
		harness_sleep_ms(50);
		harness_drain(f->h);
		child = another(f, f->pid, pid);
	}
	ticks_stop(f->h);
	assert_true(child > 0);
	return child;
}

/* Fresh samples, until there are some of this process by that name. */
static struct account take_of(const struct fixture *f, pid_t pid, const char *comm, uint64_t fill)
{
	struct account a = { 0 };

	harness_forget(f->h);
	for (int i = 0; i < PATIENCE && !a.all; i++) {
		sample_for(f->h, 50);
		a = of(f, pid, comm, fill);
	}
	assert_true(a.all > 0);
	return a;
}

/* A process with a published table, by which each stack is its leaf and complete. */
static struct fixture begin_table(uint64_t *ret_fill)
{
	struct fixture f = begin("burn");
	struct ranges_record record = { 0 };

	harness_discover(f.h);
	claim(&f, false);
	lie(&f, (struct unwind_rule){ .cfa = UNWIND_CFA_END }, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	*ret_fill = record.table_generation;
	return f;
}

static void children_are_walked_at_once(void **state)
{
	struct target target;
	struct account a;
	uint64_t number;
	struct fixture f = begin_table(&number);
	pid_t child, grandchild;

	child = fork_one(&f, f.pid, FORKS);
	a = of(&f, child, NULL, number);
	assert_true(a.all > 0);
	assert_int_equal(a.walked, a.all);
	assert_int_equal(a.by, a.all);
	a = of(&f, f.pid, NULL, number);
	assert_int_equal(a.walked, a.all);
	assert_int_equal(a.by, a.all);
	assert_true(harness_target(f.h, child, &target));
	assert_int_equal(target.unwind, TABLE + 1);
	assert_int_equal(target.flags & ~(uint32_t)TARGET_WOKEN, 0);

	grandchild = fork_one(&f, child, FORKS);
	a = of(&f, grandchild, NULL, number);
	assert_true(a.all > 0);
	assert_int_equal(a.walked, a.all);
	assert_int_equal(a.by, a.all);
	end(&f);
}

/* A child that a rule matches inherits as well, and is reported. */
static void matched_children_are_too(void **state)
{
	const struct event *event;
	struct target target;
	struct account a;
	uint64_t number;
	struct fixture f = begin_table(&number);
	pid_t child;

	harness_rule(f.h, 0, "t-burn", true, 4, 1);
	child = fork_one(&f, f.pid, FORKS);
	a = of(&f, child, NULL, number);
	assert_true(a.all > 0);
	assert_int_equal(a.by, a.all);
	assert_int_equal(harness_events(f.h, EVENT_FORK, (uint32_t)child, &event), 1);
	assert_true(harness_target(f.h, child, &target));
	assert_true(target.flags & TARGET_MATCHED);
	assert_int_equal(target.rule, 4);
	end(&f);
}

/* The new image is another: nothing of it is walked by the table of the old one. */
static void an_exec_ends_it(void **state)
{
	static const int ways[] = { FORKS, VFORKS_EXEC };

	for (size_t i = 0; i < 2; i++) {
		struct account a;
		uint64_t number;
		struct fixture f = begin_table(&number);
		pid_t child = fork_one(&f, f.pid, ways[i]);

		a = of(&f, child, "t-burn", number);
		assert_true(a.all > 0);
		assert_int_equal(a.by, a.all);
		if (ways[i] == FORKS)
			assert_int_equal(kill(child, EXECS), 0);
		a = take_of(&f, child, "exe", number);
		assert_int_equal(a.walked, 0);
		/* Nor by the inheritance of its forks: there is nothing. */
		a = take_of(&f, f.pid, NULL, number);
		assert_int_equal(a.walked, a.all);
		assert_int_equal(a.by, a.all);
		end(&f);
	}
}

/* What the table holds now is another filling: the parent's again, or another process's. */
static void another_filling_ends_it(void **state)
{
	struct ranges_record record = { 0 };
	struct account a;
	uint64_t number;
	struct fixture f = begin_table(&number), other;
	pid_t child = fork_one(&f, f.pid, FORKS);

	f.tables[TABLE].published = 0;
	assert_int_equal(take_of(&f, child, NULL, number).walked, 0);
	f.tables[TABLE].published = number;
	assert_true(take_of(&f, child, NULL, number).by > 0);

	claim(&f, false);
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	a = take_of(&f, f.pid, NULL, number);
	assert_int_equal(a.walked, a.all);
	assert_int_equal(take_of(&f, child, NULL, number).walked, 0);
	/* The old number under the new filling is a lie that is seen. */
	f.tables[TABLE].published = number;
	assert_int_equal(take_of(&f, child, NULL, number).walked, 0);

	/* Its own, once it has one. */
	other = f;
	other.pid = child;
	claim(&other, false);
	assert_true(fill(&other, &record));
	publish(&other, record.table_generation);
	a = take_of(&f, child, NULL, number);
	assert_int_equal(a.walked, a.all);
	assert_int_equal(a.by, 0);
	assert_int_equal(take_of(&f, f.pid, NULL, number).walked, 0);
	end(&f);
}

/* A table that was published after the fork is not inherited, for any word in `targets`. */
static void later_tables_are_not_inherited(void **state)
{
	struct ranges_record record = { 0 };
	struct fixture f = begin("burn"), other;
	struct account a;
	pid_t child;

	harness_discover(f.h);
	child = fork_one(&f, f.pid, FORKS);
	claim(&f, false);
	lie(&f, (struct unwind_rule){ .cfa = UNWIND_CFA_END }, UNWIND_KIND_ROWS);
	assert_true(fill(&f, &record));
	publish(&f, record.table_generation);
	other = f;
	other.pid = child;
	target_set(&other, TARGET_MAPPED, TABLE + 1);
	a = take_of(&f, f.pid, NULL, record.table_generation);
	assert_int_equal(a.walked, a.all);
	assert_int_equal(take_of(&f, child, NULL, record.table_generation).walked, 0);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_are_walked_at_once),
		cmocka_unit_test(matched_children_are_too),
		cmocka_unit_test(an_exec_ends_it),
		cmocka_unit_test(another_filling_ends_it),
		cmocka_unit_test(later_tables_are_not_inherited),
	};

	if (argc > 2 && !strcmp(argv[1], "--child")) {
		signal(FORKS, on_fork);
		signal(EXECS, on_exec);
		signal(VFORKS_EXEC, on_vfork);
	}
	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
