/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account.c: time accounts of threads, against the knowledge of the kernel itself and of the
 * threads.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "account_fixture.h"

HARNESS_LOADS("account_*", "watch_tree");

#define OTHER	   3 /* slot */
#define BOTH_TRIES 50
#define BOTH_NS	   (5 * MSEC)

#define CLOCK_SLACK_NS 20000 /* of two clocks that are compared once in a jiffy */

/* Time on a CPU and in the queue, as /proc/PID/schedstat has them. */
static void read_schedstat(pid_t pid, uint64_t times[2])
{
	char path[64];
	unsigned long long running, queue;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &running, &queue), 2);
	fclose(file);
	times[0] = running;
	times[1] = queue;
}

/* Reads both, one right after the other: the reader may lose its CPU in between, then again. */
static void read_both(const struct fixture *f, pid_t pid, uint64_t times[2],
		      struct account_record *ret_record, uint64_t *ret_ns)
{
	for (int i = 0; i < BOTH_TRIES; i++) {
		*ret_ns = harness_now_ns();
		read_schedstat(pid, times);
		read_accounts(f, pid, ret_record);
		if (harness_now_ns() - *ret_ns < BOTH_NS)
			return;
		harness_sleep_ms(10);
	}
}

static void pin(pid_t pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
}

/*
 * Two that want one CPU, and go from CPU to CPU `turns` times: one runs while the other waits, and
 * the scheduler agrees.
 */
static bool agrees_with_schedstat(int turns)
{
	struct fixture f = begin(NULL, 0);
	struct account_record before, after;
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t first[2], last[2], begin_ns, end_ns;
	pid_t pid[2];
	bool near;

	for (int i = 0; i < 2; i++) {
		pid[i] = harness_spawn("t-burn", "burn", f.dir);
		pin(pid[i], 0);
	}
	harness_sleep_ms(100);
	read_both(&f, pid[0], first, &before, &begin_ns);
	for (int i = 1; i <= turns; i++) {
		harness_sleep_ms(1000 / (unsigned int)turns);
		for (int k = 0; k < 2 && turns > 1; k++)
			pin(pid[k], i % cpus);
	}
	read_both(&f, pid[0], last, &after, &end_ns);
	assert_int_equal(sum_parts(&after.head.account),
			 after.head.account.since_ns - after.head.account.first_ns);
	near = is_near_ms(after.head.account.since_ns - before.head.account.since_ns,
			  end_ns - begin_ns) &&
	       is_near_ms(after.head.account.part_ns[ACCOUNT_RUNNING] -
				  before.head.account.part_ns[ACCOUNT_RUNNING],
			  last[0] - first[0]) &&
	       is_near_ms(after.head.account.part_ns[ACCOUNT_QUEUE] -
				  before.head.account.part_ns[ACCOUNT_QUEUE],
			  last[1] - first[1]);
	near = near && last[1] - first[1] > 100 * MSEC;
	for (int i = 0; i < 2; i++)
		harness_kill(pid[i]);
	end(&f);
	return near;
}

/* On a busy machine the comparing thread may wait for a CPU between the two. */
static void compare_with_schedstat(int turns)
{
	bool near = false;

	for (int i = 0; i < 3 && !near; i++)
		near = agrees_with_schedstat(turns);
	assert_true(near);
}

static void running_and_queue(void **state)
{
	compare_with_schedstat(1);
}

static void migrations(void **state)
{
	compare_with_schedstat(50);
}

/* ---- threads that come and go */

static bool put(const char *path, long number)
{
	FILE *file = fopen(path, "we");

	return file && fprintf(file, "%ld", number) > 0 && fclose(file) == 0;
}

static int pipe_fds[2];

#define BORN 20

static void nap_and_end(void)
{
	usleep(30000);
	_exit(0);
}

/* In the watched group: has children, one after the other, each with the tid of `context`, if any.
 */
static void have_children(void *context)
{
	const int *tid = context;
	int again = 0;
	pid_t pid;

	usleep(20000); /* from here on the kernel side knows where it is */
	for (int i = 0; i < BORN; i++) {
		if (tid && !put("/proc/sys/kernel/ns_last_pid", *tid - 1))
			_exit(0);
		pid = fork();
		if (!pid)
			nap_and_end();
		again += tid && pid == *tid;
		waitpid(pid, NULL, 0);
	}
	(void)!write(pipe_fds[1], &again, sizeof(again));
	block_sleep(NULL);
}

/* Waits until they have been; returns how many had the tid, or -1 where a tid cannot be chosen. */
static int await_children(void)
{
	int again = -1;

	close(pipe_fds[1]);
	(void)!read(pipe_fds[0], &again, sizeof(again));
	close(pipe_fds[0]);
	return again;
}

/* Born and ended between two readings: each has an account, from its birth to its end. */
static void born_and_ended(void **state)
{
	struct fixture f = begin(NULL, 0);
	struct account_record record;
	uint64_t ns;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = harness_start(have_children, NULL, f.dir);
	assert_int_equal(await_children(), 0);
	assert_int_equal(count_elements(&f, ACCOUNT_ENDED, &ns), BORN);
	assert_true(ns >= BORN * 30 * MSEC);
	assert_int_equal(read_accounts(&f, pid, &record), 1);
	assert_true(record.head.account.part_ns[ACCOUNT_CHILD] >= BORN * 30 * MSEC);
	harness_kill(pid);
	end(&f);
}

/* A tid that is used again: each thread that had it has an account. */
static void tid_is_used_again(void **state)
{
	struct fixture f = begin(NULL, 0);
	int tid = getpid() + 1000, again;
	uint64_t ns;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = harness_start(have_children, &tid, f.dir);
	again = await_children();
	if (again >= 0) {
		assert_true(again > 1);
		assert_int_equal(count_elements(&f, ACCOUNT_ENDED, &ns), BORN);
		assert_true(ns >= BORN * 30 * MSEC);
	}
	harness_kill(pid);
	end(&f);
	if (again < 0)
		skip();
}

static void *call_exec(void *context)
{
	usleep(50000);
	execl("/bin/sleep", "sleep", "100", NULL);
	return NULL;
}

static void exec_in_thread(void *context)
{
	pthread_t thread;

	usleep(20000);
	pthread_create(&thread, NULL, call_exec, NULL);
	block_sleep(NULL);
}

/*
 * execve of another thread than the first: it takes over the tid of the first one, and that account
 * ends.
 */
static void exec_of_another_thread(void **state)
{
	struct fixture f = begin(NULL, 0);
	struct account_record record;
	pid_t pid = harness_start(exec_in_thread, NULL, f.dir);
	uint64_t ns;

	harness_sleep_ms(400);
	assert_int_equal(read_accounts(&f, pid, &record), 1);
	assert_string_equal(record.head.account.comm, "sleep");
	assert_int_equal(sum_parts(&record.head.account),
			 record.head.account.since_ns - record.head.account.first_ns);
	assert_true(record.head.account.part_ns[ACCOUNT_SLEEP] >= 200 * MSEC);
	assert_int_equal(count_elements(&f, ACCOUNT_ENDED, &ns), 1);
	assert_true(ns >= 40 * MSEC);
	harness_kill(pid);
	end(&f);
}

/* To another watch: what was until then stays in the old one. */
static void moves_between_watches(void **state)
{
	struct fixture f = begin(NULL, 0);
	struct account_record before, after;
	char dir[4096], procs[4200];
	uint64_t id = harness_group(f.h, "other", dir), ns;
	pid_t pid, rival;

	harness_watch(f.h, id, OTHER, SLOT_CAPTURE, 0);
	f.h->slots[OTHER].session = 2;
	/* An account is written when the thread leaves its CPU: another one wants it too. */
	pid = harness_spawn("t-burn", "burn", f.dir);
	rival = harness_spawn("t-rival", "burn", f.dir);
	pin(pid, 0);
	pin(rival, 0);
	harness_sleep_ms(200);
	read_accounts(&f, pid, &before);
	assert_int_equal(before.head.account.slot, SLOT);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", dir);
	assert_true(put(procs, pid));
	harness_sleep_ms(200);
	read_accounts(&f, pid, &after);
	assert_int_equal(after.head.account.slot, OTHER);
	assert_true(after.head.account.first_ns >= before.head.account.since_ns - SLACK_MS * MSEC);
	assert_int_equal(count_elements(&f, ACCOUNT_ENDED | ACCOUNT_MOVED, &ns), 1);
	assert_true(ns >= 100 * MSEC); /* a busy CPU keeps it waiting at the end */
	harness_kill(pid);
	harness_kill(rival);
	end(&f);
}

/* ---- walls */

#define ROOM  4
#define CROWD 10

static void table_is_full(void **state)
{
	const struct harness_options options = { .accounts = ROOM };
	struct fixture f = begin(&options, 0);
	struct slot_accounts each[HARNESS_CPUS];
	struct account_record none;
	uint64_t ns, lost = 0;
	uint32_t slot = SLOT;
	pid_t pid[CROWD];

	for (int i = 0; i < CROWD; i++)
		pid[i] = harness_start(block_sleep, NULL, f.dir);
	harness_sleep_ms(200);
	assert_int_equal(read_accounts(&f, 0, &none), CROWD);
	assert_int_equal(count_elements(&f, 0, &ns), ROOM);
	for (int i = 0; i < CROWD; i++)
		harness_kill(pid[i]);
	harness_sleep_ms(50);
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f.h->skel->maps.account_losses), &slot, each), 0);
	for (int i = 0; i < libbpf_num_possible_cpus(); i++)
		lost += each[i].ended;
	assert_int_equal(lost, CROWD - ROOM);
	lost = 0;
	for (int i = 0; i < libbpf_num_possible_cpus(); i++)
		lost += each[i].unqueued;
	assert_true(lost >= CROWD - ROOM);
	end(&f);
}

/* Whether a process that burns in the watched group gets an account. */
static bool gets_account(struct fixture *f)
{
	pid_t pid = harness_spawn("t-burn", "burn", f->dir);
	struct thread_times times;
	cpu_set_t one;
	bool found;

	/* Two on one CPU, so that there are switches. */
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(pid, sizeof(one), &one);
	harness_sleep_ms(200);
	found = harness_account(f->h, pid, &times);
	harness_kill(pid);
	return found;
}

#define JIFFY_MS 20 /* for so long at most a CPU knows which watch a cgroup had */

static void each_gate_closes(void **state)
{
	struct fixture f = begin(NULL, 0);
	int watches = bpf_map__fd(f.h->skel->maps.watches);
	struct control *c = f.h->control;
	uint32_t beyond = 0xfffffff0;
	pid_t beside = harness_spawn("t-burn", "burn", NULL);
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	assert_int_equal(sched_setaffinity(beside, sizeof(one), &one), 0);
	assert_true(gets_account(&f));
	f.h->slots[SLOT].state = SLOT_RECORDER;
	assert_false(gets_account(&f));
	f.h->slots[SLOT].state = SLOT_CAPTURE;
	c->heartbeat_ns -= 2 * c->stale_ns;
	assert_false(gets_account(&f));
	c->heartbeat_ns = harness_now_ns();
	f.h->slots[SLOT].flags = SLOT_BY_PROCESS;
	assert_false(gets_account(&f));
	f.h->slots[SLOT].flags = 0;
	assert_true(gets_account(&f));
	assert_int_equal(bpf_map_update_elem(watches, &f.id, &beyond, BPF_ANY), 0);
	harness_sleep_ms(JIFFY_MS);
	assert_false(gets_account(&f));
	assert_int_equal(bpf_map_delete_elem(watches, &f.id), 0);
	harness_sleep_ms(JIFFY_MS);
	assert_false(gets_account(&f));
	end(&f);
}

/* The watch around takes the threads of the one within. */
static void watch_around(void **state)
{
	struct fixture f = begin(NULL, 0);
	struct account_record record;
	char dir[4096];
	uint64_t id = harness_group(f.h, "account/in", dir);
	pid_t pid;

	harness_watch(f.h, id, OTHER, SLOT_RECORDER, 0);
	harness_watch_tree(f.h);
	pid = harness_start(block_sleep, NULL, dir);
	harness_sleep_ms(100);
	read_accounts(&f, pid, &record);
	harness_sleep_ms(50);
	read_accounts(&f, pid, &record);
	assert_int_equal(record.head.account.slot, OTHER);
	assert_true(record.head.account.part_ns[ACCOUNT_SLEEP] > 0);
	harness_kill(pid);
	end(&f);
}

/* The consumer may write accounts: false ones do no harm. */
static void false_words(void **state)
{
	struct fixture f = begin(NULL, 0);
	struct account_record record;
	struct thread_times a;
	pid_t pid = harness_spawn("t-burn", "burn", f.dir);

	for (int i = 0; i < 50; i++) {
		memset(&a, i % 2 ? 0xff : 0x80 + i, sizeof(a));
		if (i % 3)
			a.account.slot = SLOT;
		a.account.flags = i % 4 ? 0 : a.account.flags;
		put_times(&f, pid, &a, i < 25);
		harness_sleep_ms(5);
		read_accounts(&f, pid, &record);
		assert_int_equal(record.head.tid, pid);
	}
	harness_kill(pid);
	end(&f);
}

/* When the thread began its last nap; shared with it. */
static volatile uint64_t *nap_ns;

static void note_and_nap(void *context)
{
	for (;;) {
		*nap_ns = harness_now_ns();
		usleep(3000);
	}
}

/* Whether the account of a napping thread has the moment when it left its CPU by its own note. */
static bool left_when_it_says(const struct fixture *f, pid_t pid)
{
	uint64_t said_ns = *nap_ns, now_ns;
	struct thread_times times;

	if (!harness_account(f->h, pid, &times))
		return false;
	now_ns = harness_now_ns();
	return said_ns == *nap_ns && times.account.since_ns >= said_ns - CLOCK_SLACK_NS &&
	       times.account.since_ns <= now_ns && times.account.since_ns - said_ns < MSEC;
}

/*
 * The switches read the scheduler's clock, and the account is in CLOCK_MONOTONIC. On a busy machine
 * the thread may be preempted between its note and its nap, and the reader may be late.
 */
static void clock_is_monotonic(void **state)
{
	struct fixture f = begin(NULL, 0);
	int right = 0;
	pid_t pid;

	nap_ns = mmap(NULL, sizeof(*nap_ns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(nap_ns != MAP_FAILED);
	pid = harness_start(note_and_nap, NULL, f.dir);
	for (int i = 0; i < 400 && right < 40; i++) {
		usleep(2300);
		right += left_when_it_says(&f, pid);
	}
	assert_true(right >= 40);
	harness_kill(pid);
	munmap((void *)nap_ns, sizeof(*nap_ns));
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_and_queue),	  cmocka_unit_test(migrations),
		cmocka_unit_test(exec_of_another_thread), cmocka_unit_test(born_and_ended),
		cmocka_unit_test(tid_is_used_again),	  cmocka_unit_test(moves_between_watches),
		cmocka_unit_test(table_is_full),	  cmocka_unit_test(each_gate_closes),
		cmocka_unit_test(watch_around),		  cmocka_unit_test(false_words),
		cmocka_unit_test(clock_is_monotonic),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
