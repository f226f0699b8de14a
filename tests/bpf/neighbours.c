/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * neighbours.c: the cgroups with time that the sampler counts while a session runs, and that it
 * counts all of it.
 */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "sample_fixture.h"

HARNESS_LOADS("sampler");

/* The watched group of sample_begin, and a burning process in another. */
struct pair {
	struct fixture own;
	char dir[4096];
	uint64_t id;
	pid_t pid;
};

static struct pair begin_pair(const struct harness_options *options)
{
	struct pair p = { .own = sample_begin(options, SLOT_CAPTURE, 0) };

	p.id = harness_group(p.own.h, "neighbour", p.dir);
	p.pid = harness_spawn("t-other", "burn", p.dir);
	p.own.h->control->sessions = 1;
	return p;
}

static void end_pair(struct pair *p)
{
	harness_kill(p->pid);
	sample_end(&p->own);
}

static bool find_neighbour(const struct harness *h, uint64_t id, struct neighbour *ret_found)
{
	return bpf_map_lookup_elem(bpf_map__fd(h->skel->maps.neighbours), &id, ret_found) == 0;
}

/* Ticks until both groups have had more than `ms`, however little they run. */
static void tick_for_both(const struct pair *p, uint32_t hz, uint64_t ms)
{
	struct neighbour own = {}, other = {};

	harness_tick(p->own.h, hz);
	for (int i = 0; i < WAIT_MS / 10; i++) {
		harness_sleep_ms(10);
		if (find_neighbour(p->own.h, p->own.id, &own) && own.cpu_ns > ms * 1000000 &&
		    find_neighbour(p->own.h, p->id, &other) && other.cpu_ns > ms * 1000000)
			break;
	}
	sample_stop(p->own.h);
	assert_true(own.cpu_ns > ms * 1000000 && other.cpu_ns > ms * 1000000);
}

/* Sums all that was counted in `neighbours`, and how many cgroups there are. */
static uint64_t sum_neighbours(const struct harness *h, size_t *ret_cgroups)
{
	int fd = bpf_map__fd(h->skel->maps.neighbours);
	struct neighbour n;
	uint64_t key, sum = 0;
	uint64_t *at = NULL;

	*ret_cgroups = 0;
	while (bpf_map_get_next_key(fd, at, &key) == 0) {
		at = &key;
		assert_int_equal(bpf_map_lookup_elem(fd, &key, &n), 0);
		sum += n.cpu_ns;
		(*ret_cgroups)++;
	}
	return sum;
}

/* Whether the cgroup is the last on the counted path. */
static bool has_above(const struct neighbour *n, uint64_t id)
{
	int levels = 0;

	while (levels < NEIGHBOUR_LEVELS && n->above[levels])
		levels++;
	return levels && n->above[levels - 1] == id;
}

static void times_go_to_their_cgroups(void **state)
{
	struct pair p = begin_pair(NULL);
	struct neighbour own, other;

	tick_for_both(&p, HZ, 30);
	assert_true(find_neighbour(p.own.h, p.own.id, &own));
	assert_true(find_neighbour(p.own.h, p.id, &other));
	assert_int_equal(own.slot, SLOT);
	assert_int_equal(other.slot, NO_SLOT);
	assert_int_equal(own.tgid, p.own.pid);
	assert_int_equal(other.tgid, p.pid);
	assert_string_equal(own.comm, "t-burn");
	assert_string_equal(other.comm, "t-other");
	assert_string_equal(own.name, "burn");
	assert_string_equal(other.name, "neighbour");
	assert_true(has_above(&own, p.own.id) && has_above(&other, p.id));
	assert_false(has_above(&own, p.id));
	end_pair(&p);
}

/* The name is that of the threads with the most ticks, and not of the first that was met. */
static void name_of_most_ticks(void **state)
{
	struct fixture own = sample_begin(NULL, SLOT_CAPTURE, 0);
	struct neighbour n = {};
	char dir[4096];
	uint64_t id = harness_group(own.h, "neighbour", dir), first_ns;
	pid_t first = harness_spawn("t-first", "burn", dir), most;

	own.h->control->sessions = 1;
	harness_tick(own.h, HZ);
	for (int i = 0; i < WAIT_MS / 10 && !find_neighbour(own.h, id, &n); i++)
		harness_sleep_ms(10);
	harness_kill(first);
	assert_true(find_neighbour(own.h, id, &n));
	assert_string_equal(n.comm, "t-first");
	first_ns = n.cpu_ns;
	most = harness_spawn("t-most", "burn", dir);
	for (int i = 0; i < WAIT_MS / 10 && n.cpu_ns < 5 * first_ns + 100000000; i++) {
		harness_sleep_ms(10);
		assert_true(find_neighbour(own.h, id, &n));
	}
	assert_string_equal(n.comm, "t-most");
	assert_true(n.votes >= n.ticks - n.votes);
	harness_kill(most);
	sample_end(&own);
}

/* The times by CPU add up to a cgroup's, and a group that is bound to a CPU has no other. */
static void times_are_known_by_cpu(void **state)
{
	struct pair p = begin_pair(NULL);
	uint64_t each[HARNESS_CPUS] = { 0 }, sum = 0;
	struct neighbour other;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	assert_int_equal(sched_setaffinity(p.pid, sizeof(set), &set), 0);
	tick_for_both(&p, HZ, 30);
	assert_true(find_neighbour(p.own.h, p.id, &other));
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(p.own.h->skel->maps.neighbour_cpus), &p.id, each),
		0);
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		sum += each[cpu];
	assert_int_equal(sum, other.cpu_ns);
	assert_int_equal(sum, each[0]);
	end_pair(&p);
}

/* A tick counts for its period, so that one of the recorder counts for more than one of a capture.
 */
static void ticks_have_their_weight(void **state)
{
	static const uint32_t rates[] = { HZ, HZ / 5 };

	for (size_t i = 0; i < 2; i++) {
		struct pair p = begin_pair(NULL);
		struct neighbour own;

		tick_for_both(&p, rates[i], 30);
		assert_true(find_neighbour(p.own.h, p.own.id, &own));
		assert_int_equal(own.cpu_ns,
				 harness_totals(p.own.h).ticks_watched * (1000000000u / rates[i]));
		end_pair(&p);
	}
}

/* Every run of the program is a cgroup's time, or the idle task's. */
static void all_time_is_counted(void **state)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct pair p = begin_pair(NULL);
	struct bpf_prog_info info = {};
	uint32_t bytes = sizeof(info);
	struct totals totals;
	size_t cgroups;
	uint64_t sum;

	assert_true(stats >= 0);
	tick_for_both(&p, HZ, 30);
	totals = harness_totals(p.own.h);
	sum = sum_neighbours(p.own.h, &cgroups) + totals.idle_ns;
	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(p.own.h->skel->progs.sampler),
						&info, &bytes),
			 0);
	assert_int_equal(sum, info.run_cnt * (1000000000u / HZ));
	assert_int_equal(totals.neighbours_full_ns + totals.neighbours_hidden_ns, 0);
	close(stats);
	end_pair(&p);
}

static void no_session_counts_nothing(void **state)
{
	struct pair p = begin_pair(NULL);
	struct totals totals;
	size_t cgroups;

	p.own.h->control->sessions = 0;
	sample_for(p.own.h, 100, 20);
	totals = harness_totals(p.own.h);
	assert_true(totals.ticks_watched >= 20);
	assert_int_equal(sum_neighbours(p.own.h, &cgroups), 0);
	assert_int_equal(cgroups, 0);
	assert_int_equal(totals.idle_ns, 0);
	end_pair(&p);
}

static void dead_man_counts_nothing(void **state)
{
	struct pair p = begin_pair(NULL);
	size_t cgroups;

	p.own.h->control->armed = 0;
	harness_tick(p.own.h, HZ);
	p.own.h->control->stale_ns = 0;
	p.own.h->control->armed = 1;
	sample_await(p.own.h, 20);
	sample_stop(p.own.h);
	assert_int_equal(sum_neighbours(p.own.h, &cgroups), 0);
	assert_int_equal(cgroups, 0);
	assert_int_equal(harness_totals(p.own.h).idle_ns, 0);
	end_pair(&p);
}

/* What finds no room is counted as a whole: the sum still is the time of all ticks. */
static void full_map_is_counted(void **state)
{
	const struct harness_options options = { .neighbours = 1 };
	struct pair p = begin_pair(&options);
	const struct neighbour taken = {};
	uint64_t nobody = ~0ull;
	struct totals totals;
	size_t cgroups;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(p.own.h->skel->maps.neighbours), &nobody,
					     &taken, BPF_ANY),
			 0);
	sample_for(p.own.h, 0, 50);
	totals = harness_totals(p.own.h);
	assert_true(totals.neighbours_full_ns >= totals.ticks_watched * (1000000000u / HZ));
	assert_int_equal(sum_neighbours(p.own.h, &cgroups), 0);
	assert_int_equal(cgroups, 1);
	end_pair(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_go_to_their_cgroups),
		cmocka_unit_test(name_of_most_ticks),
		cmocka_unit_test(times_are_known_by_cpu),
		cmocka_unit_test(ticks_have_their_weight),
		cmocka_unit_test(all_time_is_counted),
		cmocka_unit_test(no_session_counts_nothing),
		cmocka_unit_test(dead_man_counts_nothing),
		cmocka_unit_test(full_map_is_counted),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
