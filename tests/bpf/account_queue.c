/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * account_queue.c: waits for a CPU by length, and the runners in that time, against the knowledge
 * of the kernel itself and of the threads.
 */
#include <fcntl.h>
#include <sched.h>

#include "account_fixture.h"

HARNESS_LOADS("account_*");

#define TRIES	  3 /* others work on this machine, also on the CPU that the test is about */
#define WINDOW_MS 1500
#define POINTS	  5 /* of a hundred */

static void pin(pid_t pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
}

/* What a thread waited between two readings. */
struct waited {
	uint64_t queue_ns; /* of its account */
	uint64_t count, behind_ns[QUEUE_BEHIND_], sum_ns;
	uint64_t low_ns, high_ns; /* bounds of the sum, by the histogram */
};

static uint64_t bound_ns(int element)
{
	return (QUEUE_FIRST_NS << element / 2) / 2 * (element % 2 ? 3 : 2);
}

static struct waited compare(const struct account_record *from, const struct account_record *to)
{
	struct waited w = { .queue_ns = to->head.account.part_ns[ACCOUNT_QUEUE] -
					from->head.account.part_ns[ACCOUNT_QUEUE] };

	for (int i = 0; i < QUEUE_BUCKETS; i++) {
		uint64_t waits = to->queue.waits[i] - from->queue.waits[i];

		w.count += waits;
		w.high_ns += waits * bound_ns(i);
		w.low_ns += i ? waits * bound_ns(i - 1) : 0;
	}
	for (int i = 0; i < QUEUE_BEHIND_; i++) {
		w.behind_ns[i] = to->queue.behind_ns[i] - from->queue.behind_ns[i];
		w.sum_ns += w.behind_ns[i];
	}
	return w;
}

/* Time that the map has for a cgroup, in all watches. */
static uint64_t blamed_ns(const struct fixture *f, uint64_t cgroup_id)
{
	const struct queue_neighbour key = { .cgroup_id = cgroup_id, .slot = SLOT };
	uint64_t ns = 0;

	bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.queue_neighbours), &key, &ns);
	return ns;
}

/* The same of all cgroups: on a busy machine others run on that CPU too. */
static uint64_t all_blamed_ns(const struct fixture *f)
{
	int fd = bpf_map__fd(f->h->skel->maps.queue_neighbours);
	struct queue_neighbour key, *at = NULL;
	uint64_t ns, sum = 0;

	while (bpf_map_get_next_key(fd, at, &key) == 0) {
		at = &key;
		if (key.slot == SLOT && bpf_map_lookup_elem(fd, &key, &ns) == 0)
			sum += ns;
	}
	return sum;
}

static void print_waited(const struct waited *w)
{
	print_error("queue %.1f ms, %llu waits of %.1f to %.1f, sum %.1f ms:",
		    (double)w->queue_ns / MSEC, (unsigned long long)w->count,
		    (double)w->low_ns / MSEC, (double)w->high_ns / MSEC, (double)w->sum_ns / MSEC);
	for (int i = 0; i < QUEUE_BEHIND_; i++)
		print_error(" %.1f", (double)w->behind_ns[i] / MSEC);
	print_error("\n");
}

/* Time on a CPU, as /proc/PID/schedstat has it. */
static uint64_t ran_ns(pid_t pid)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu", &ns), 1);
	fclose(file);
	return ns;
}

/* Whether two times are the same but for some points of all waiting. */
static bool is_near(uint64_t ns, uint64_t wanted_ns, const struct waited *w)
{
	uint64_t difference = ns > wanted_ns ? ns - wanted_ns : wanted_ns - ns;
	bool near = difference * 100 <= w->sum_ns * POINTS;

	if (!near)
		print_error("%.1f ms, and not %.1f\n", (double)ns / MSEC, (double)wanted_ns / MSEC);
	return near;
}

/* A wait that goes on, at both ends, is in the account but not counted yet. */
static bool has_counted(const struct waited *w)
{
	return w->count >= 20 && w->queue_ns > 100 * MSEC && w->sum_ns * 20 <= w->queue_ns * 21 &&
	       w->sum_ns * 21 >= w->queue_ns * 20 - 200 * MSEC && w->low_ns <= w->sum_ns &&
	       w->sum_ns <= w->high_ns;
}

/* A thread of the watched cgroup, one beside it, and a rival of another one: all want one CPU. */
struct contest {
	struct waited w;
	uint64_t sibling_ns, rival_ns; /* what these ran */
	uint64_t blamed_ns;	       /* what is charged to the rival's cgroup: by both others */
};

static struct contest contend(struct fixture *f, bool sibling, bool rival)
{
	struct contest c = {};
	struct account_record before, after;
	char dir[4096];
	uint64_t id = harness_group(f->h, "rival", dir);
	pid_t pid[3] = { harness_spawn("t-burn", "burn", f->dir) };

	if (sibling)
		pid[1] = harness_spawn("t-sibling", "burn", f->dir);
	if (rival)
		pid[2] = harness_spawn("t-rival", "burn", dir);
	for (int i = 0; i < 3; i++)
		if (pid[i])
			pin(pid[i], 0);
	harness_sleep_ms(100);
	c.sibling_ns = sibling ? ran_ns(pid[1]) : 0;
	c.rival_ns = rival ? ran_ns(pid[2]) : 0;
	c.blamed_ns = blamed_ns(f, id);
	read_accounts(f, pid[0], &before);
	harness_sleep_ms(WINDOW_MS);
	c.sibling_ns = sibling ? ran_ns(pid[1]) - c.sibling_ns : 0;
	c.rival_ns = rival ? ran_ns(pid[2]) - c.rival_ns : 0;
	c.blamed_ns = blamed_ns(f, id) - c.blamed_ns;
	read_accounts(f, pid[0], &after);
	for (int i = 0; i < 3; i++)
		if (pid[i])
			harness_kill(pid[i]);
	c.w = compare(&before, &after);
	return c;
}

/*
 * The histogram equals the account, and the runner is blamed, within points. On a busy machine
 * others run on that CPU too, and the reader may be late.
 */
static bool is_right(bool sibling, bool rival)
{
	struct fixture f = begin(NULL, 0);
	struct contest c = contend(&f, sibling, rival);
	bool right = has_counted(&c.w) &&
		     is_near(c.w.behind_ns[QUEUE_SIBLINGS], c.sibling_ns, &c.w) &&
		     is_near(c.blamed_ns, sibling ? 2 * c.rival_ns : c.rival_ns, &c.w);

	if (!right)
		print_waited(&c.w);
	end(&f);
	return right;
}

static void behind_a_sibling(void **state)
{
	bool right = false;

	for (int i = 0; i < TRIES && !right; i++)
		right = is_right(true, false);
	assert_true(right);
}

static void behind_a_neighbour(void **state)
{
	bool right = false;

	for (int i = 0; i < TRIES && !right; i++)
		right = is_right(false, true);
	assert_true(right);
}

static void behind_both(void **state)
{
	bool right = false;

	for (int i = 0; i < TRIES && !right; i++)
		right = is_right(true, true);
	assert_true(right);
}

/* Passes one byte on, from a pipe to another one. */
static void take_turns(void *context)
{
	const int *fd = context;
	char byte;

	while (read(fd[0], &byte, 1) == 1 && write(fd[1], &byte, 1) == 1)
		;
}

/*
 * Whether a wait behind two cgroups that take turns of some microseconds is theirs, however often
 * they do.
 */
static bool is_right_behind_turns(void)
{
	struct fixture f = begin(NULL, 0);
	struct account_record before, after;
	pid_t pid[3] = { harness_spawn("t-burn", "burn", f.dir) };
	uint64_t id[2], ran = 0, blamed = 0, all;
	struct waited w;
	int pipes[2][2];
	char dir[4096];
	bool right;

	assert_int_equal(pipe2(pipes[0], O_CLOEXEC), 0);
	assert_int_equal(pipe2(pipes[1], O_CLOEXEC), 0);
	for (int i = 0; i < 2; i++) {
		int ends[2] = { pipes[i][0], pipes[!i][1] };

		id[i] = harness_group(f.h, i ? "turns-1" : "turns-0", dir);
		pid[1 + i] = harness_start(take_turns, ends, dir);
	}
	for (int i = 0; i < 3; i++)
		pin(pid[i], 0);
	assert_int_equal(write(pipes[0][1], "", 1), 1);
	harness_sleep_ms(100);
	read_accounts(&f, pid[0], &before);
	all = all_blamed_ns(&f);
	for (int i = 0; i < 2; i++) {
		ran -= ran_ns(pid[1 + i]);
		blamed -= blamed_ns(&f, id[i]);
	}
	harness_sleep_ms(WINDOW_MS);
	read_accounts(&f, pid[0], &after);
	all = all_blamed_ns(&f) - all;
	for (int i = 0; i < 2; i++) {
		ran += ran_ns(pid[1 + i]);
		blamed += blamed_ns(&f, id[i]);
	}
	for (int i = 0; i < 3; i++)
		harness_kill(pid[i]);
	for (int i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
	w = compare(&before, &after);
	right = has_counted(&w) && is_near(w.behind_ns[QUEUE_UNSEEN], 0, &w) &&
		is_near(all, w.behind_ns[QUEUE_OTHERS], &w) && ran > blamed * 3 / 4 &&
		blamed > ran * 3 / 4;
	if (!right)
		print_waited(&w);
	end(&f);
	return right;
}

static void behind_turns(void **state)
{
	bool right = false;

	for (int i = 0; i < TRIES && !right; i++)
		right = is_right_behind_turns();
	assert_true(right);
}

/* In the watched group: sleeps a millisecond, again and again. */
static void nap(void *context)
{
	for (;;)
		usleep(1000);
}

/* How often the process has left a CPU so far, asleep or not (/proc/PID/status, proc(5)). */
static uint64_t switches_of(pid_t pid)
{
	char path[32], line[128];
	uint64_t sum = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, "voluntary_ctxt_switches:"))
			sum += strtoull(strchr(line, ':') + 1, NULL, 10);
	fclose(file);
	return sum;
}

/*
 * Whether its waits were counted as often as it left the CPU, by the kernel's own count (within
 * 4 %), however often that is, and none of them is a sibling's.
 */
static bool is_woken_right(void)
{
	struct fixture f = begin(NULL, 0);
	struct account_record before, after;
	pid_t pid = harness_start(nap, NULL, f.dir);
	uint64_t left[4], least, most, ends_ns;
	struct waited w;
	bool right;

	harness_sleep_ms(50);
	left[0] = switches_of(pid);
	read_accounts(&f, pid, &before);
	left[1] = switches_of(pid);
	harness_sleep_ms(500);
	left[2] = switches_of(pid);
	read_accounts(&f, pid, &after);
	left[3] = switches_of(pid);
	w = compare(&before, &after);
	least = (left[2] - left[1]) * 24 / 25;
	most = (left[3] - left[0]) * 26 / 25 + 2;
	assert_true(least >= 5);
	assert_in_range(w.count, least - 2, most);
	/* Beside others a wait takes milliseconds, and one may go on at each end. */
	ends_ns = 2 * after.queue.longest_ns;
	right = !w.behind_ns[QUEUE_SIBLINGS] && w.low_ns <= w.sum_ns + ends_ns &&
		w.sum_ns <= w.high_ns + ends_ns;
	if (!right)
		print_waited(&w);
	assert_true(after.queue.longest_end_ns >= after.head.account.first_ns);
	harness_kill(pid);
	end(&f);
	return right;
}

/*
 * A sleeper that finds its CPU free waits some microseconds for it, and no cgroup is blamed. A wait
 * that ends while the account is copied may be in one of the two sums only.
 */
static void wakes_up(void **state)
{
	bool right = false;

	for (int i = 0; i < TRIES && !right; i++)
		right = is_woken_right();
	assert_true(right);
}

/* More cgroups than the table has room for: their time is unlisted, and nothing is missing. */
static void table_is_full(void **state)
{
	const struct harness_options options = { .queue_neighbours = 1 };
	bool right = false;

	for (int i = 0; i < TRIES && !right; i++) {
		struct fixture f = begin(&options, 0);
		const struct queue_neighbour taken = { .cgroup_id = ~0ull, .slot = SLOT };
		uint64_t ns = 1;
		struct contest c;

		assert_int_equal(bpf_map_update_elem(bpf_map__fd(f.h->skel->maps.queue_neighbours),
						     &taken, &ns, BPF_ANY),
				 0);
		c = contend(&f, false, true);
		assert_int_equal(c.blamed_ns, 0);
		assert_int_equal(c.w.behind_ns[QUEUE_OTHERS], 0);
		right = has_counted(&c.w) && c.w.behind_ns[QUEUE_UNLISTED] >= c.w.sum_ns / 2;
		if (!right)
			print_waited(&c.w);
		end(&f);
	}
	assert_true(right);
}

/* A thread that goes from CPU to CPU while it waits: all of it is accounted for, under a name. */
static void moved_while_waiting(void **state)
{
	struct fixture f = begin(NULL, 0);
	struct account_record before, after;
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	pid_t pid[4];
	struct waited w;

	for (int i = 0; i < 4; i++) {
		pid[i] = harness_spawn("t-burn", "burn", f.dir);
		pin(pid[i], i % cpus);
	}
	harness_sleep_ms(100);
	read_accounts(&f, pid[0], &before);
	for (int i = 0; i < 300; i++) {
		pin(pid[0], i % cpus);
		usleep(2000);
	}
	read_accounts(&f, pid[0], &after);
	w = compare(&before, &after);
	assert_true(w.sum_ns <= w.queue_ns + 200 * MSEC);
	assert_true(w.low_ns <= w.sum_ns && w.sum_ns <= w.high_ns);
	if (cpus > 1)
		assert_true(w.behind_ns[QUEUE_MOVED] > 0);
	for (int i = 0; i < 4; i++)
		harness_kill(pid[i]);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behind_a_sibling),
		cmocka_unit_test(behind_a_neighbour),
		cmocka_unit_test(behind_both),
		cmocka_unit_test(behind_turns),
		cmocka_unit_test(wakes_up),
		cmocka_unit_test(table_is_full),
		cmocka_unit_test(moved_while_waiting),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
