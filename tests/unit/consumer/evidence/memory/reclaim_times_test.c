/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stretches of reclaim: differences of readings, clipped to the session, and the other cgroups in
 * reclaim.
 */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "consumer/evidence/memory/reclaim_times.h"

#define OWN   3
#define VDA   (254u << 20)
#define MSEC  1000000ull
#define BEGIN (1000 * MSEC)
#define END   (4000 * MSEC)
#define ROOM  64

/* A reading under construction. */
struct made {
	struct reclaim_reading read;
	struct reclaim_key keys[ROOM];
	struct reclaim_sums sums[ROOM];
	struct reclaim_open_key open_keys[ROOM];
	struct reclaim_open open[ROOM];
};

static struct made before, now;
static struct reclaim_times all;

static bool is_own(const void *context, uint32_t slot)
{
	return slot == OWN;
}

static const struct slot_owner owner = { is_own, NULL };

static size_t group_it(void *context, uint64_t cgroup_id)
{
	return 0;
}

static void name_it(void *context, struct neighbour_row *row)
{
	char text[32];

	snprintf(text, sizeof(text), "/c%llu", (unsigned long long)row->cgroup_id);
	row->path = row->cgroup_id == 99 ? NULL : strdup(text);
}

static const struct neighbour_names names = { .group = group_it, .name = name_it };

static int setup(void **state)
{
	before = (struct made){ .read.at_ns = BEGIN };
	now = (struct made){ .read.at_ns = END };
	all = (struct reclaim_times){};
	return 0;
}

static int teardown(void **state)
{
	reclaim_times_done(&all);
	return 0;
}

static uint32_t slot_of(uint64_t cgroup_id)
{
	return cgroup_id == 1 ? OWN : NO_SLOT;
}

/* Adds `count` stretches of 2 ms each, in which 8 pages were found. Returns the element. */
static struct reclaim_sums *add(struct made *m, uint64_t cgroup_id, enum reclaim_kind kind,
				uint64_t count)
{
	uint32_t i = m->read.n_sums++;

	m->read.keys = m->keys;
	m->read.sums = m->sums;
	m->keys[i] = (struct reclaim_key){ .cgroup_id = cgroup_id,
					   .slot = slot_of(cgroup_id),
					   .device = kind == RECLAIM_THROTTLE ? VDA : 0,
					   .kind = kind };
	m->sums[i] = (struct reclaim_sums){ .count = count,
					    .time_ns = count * 2 * MSEC,
					    .longest_ns = count * MSEC,
					    .pages = count * 8 };
	m->sums[i].steps[22] = (uint32_t)count;
	return &m->sums[i];
}

/* Adds a stretch of a thread that is not over. */
static void add_open(struct made *m, uint32_t tid, enum reclaim_kind kind, uint64_t since_ns)
{
	uint32_t i = m->read.n_open++;

	m->read.open_keys = m->open_keys;
	m->read.open = m->open;
	m->open_keys[i] = (struct reclaim_open_key){ .tid = tid, .kind = kind };
	m->open[i] = (struct reclaim_open){ .since_ns = since_ns, .cgroup_id = 1, .slot = OWN };
}

static void make(void)
{
	assert_int_equal(reclaim_times_make(&before.read, &now.read, &owner, &all), 0);
	reclaim_times_close(&all, &names);
}

static void test_difference(void **state)
{
	const struct reclaim_part *p;

	add(&before, 1, RECLAIM_LIMIT, 10);
	add(&now, 1, RECLAIM_DIRECT, 1);
	add(&now, 1, RECLAIM_LIMIT, 25);
	make();
	assert_int_equal(all.count, 2);
	p = &all.items[0];
	assert_int_equal(p->kind, RECLAIM_LIMIT);
	assert_int_equal(p->own.count, 15);
	assert_int_equal(p->own.time_ns, 30 * MSEC);
	assert_int_equal(p->own.whole_ns, 30 * MSEC);
	assert_int_equal(p->own.longest_ns, 25 * MSEC);
	assert_int_equal(p->own.pages, 15 * 8);
	assert_int_equal(p->own.steps[22], 15);
	assert_int_equal(reclaim_times_ns(&all, RECLAIM_LIMIT), 30 * MSEC);
	assert_int_equal(reclaim_times_ns(&all, RECLAIM_DIRECT), 2 * MSEC);
	assert_int_equal(reclaim_times_ns(&all, RECLAIM_THROTTLE), 0);
	assert_int_equal(reclaim_times_sum(&all).count, 16);
	assert_int_equal(all.ledger.attempted, 16);
	assert_int_equal(all.ledger.emitted, 16);
}

/* What was before the session and after its end is not in it, whole stretches are in the steps. */
static void test_clipped(void **state)
{
	/* Open at the begin since 5 ms: one that ends after 7 ms, and one that goes on. */
	add_open(&before, 10, RECLAIM_LIMIT, BEGIN - 5 * MSEC);
	add_open(&before, 11, RECLAIM_LIMIT, BEGIN - 5 * MSEC);
	add(&now, 1, RECLAIM_LIMIT, 1)->time_ns = 12 * MSEC;
	add_open(&now, 11, RECLAIM_LIMIT, BEGIN - 5 * MSEC);
	/* Thread 10 is in another one by now. */
	add_open(&now, 10, RECLAIM_LIMIT, END - 3 * MSEC);
	make();
	assert_int_equal(all.count, 1);
	assert_int_equal(all.items[0].own.open, 2);
	assert_int_equal(all.items[0].own.open_ns, END - BEGIN + 3 * MSEC);
	assert_int_equal(all.items[0].own.time_ns, 7 * MSEC + END - BEGIN + 3 * MSEC);
	assert_int_equal(all.items[0].own.whole_ns, 12 * MSEC);
	assert_int_equal(all.ledger.emitted, 3);
}

/* Ends without a begin: their time since the begin is known, unless a stretch found no room. */
static void test_orphans(void **state)
{
	struct reclaim_sums *sums = add(&now, 1, RECLAIM_DIRECT, 0);

	sums->orphans = 2;
	sums->orphan_ends_ns = 2 * BEGIN + 9 * MSEC;
	make();
	assert_int_equal(all.items[0].own.orphans, 2);
	assert_int_equal(all.items[0].own.time_ns, 9 * MSEC);
	assert_int_equal(all.items[0].own.count, 0);
	assert_int_equal(all.ledger.emitted, 2);
	reclaim_times_done(&all);
	now.read.losses.untracked = 3;
	make();
	assert_int_equal(all.items[0].own.time_ns, 0);
	assert_int_equal(all.ledger.emitted, 0);
	assert_int_equal(all.ledger.lost[DROP_RECLAIM_FULL], 3);
	assert_int_equal(all.ledger.attempted, 3);
	/* A number that no kernel side writes. */
	reclaim_times_done(&all);
	now.read.losses.untracked = 0;
	sums->orphan_ends_ns = 1;
	make();
	assert_int_equal(all.items[0].own.time_ns, 0);
}

/* Pauses are counted by disk; `everybody` has them all. */
static void test_disks(void **state)
{
	add(&now, 1, RECLAIM_THROTTLE, 4);
	add(&now, 1, RECLAIM_THROTTLE, 1);
	now.keys[1].device = VDA + 16;
	add(&now, 2, RECLAIM_THROTTLE, 7);
	now.read.losses.awake = 5;
	make();
	assert_int_equal(all.count, 2);
	assert_int_equal(all.items[0].device, VDA);
	assert_int_equal(all.items[0].own.count, 4);
	assert_int_equal(all.items[0].everybody_count, 11);
	assert_int_equal(all.items[0].everybody_ns, 22 * MSEC);
	assert_int_equal(all.items[1].device, VDA + 16);
	assert_int_equal(all.items[1].everybody_count, 1);
	assert_int_equal(reclaim_times_ns(&all, RECLAIM_THROTTLE), 10 * MSEC);
	assert_int_equal(all.awake, 5);
}

static void test_neighbours(void **state)
{
	add(&now, 1, RECLAIM_DIRECT, 1);
	for (uint64_t id = 2; id < 10; id++)
		add(&now, id, RECLAIM_DIRECT, id);
	add(&now, 2, RECLAIM_LIMIT, 100);
	add(&now, 99, RECLAIM_COMPACTION, 50);
	add(&now, 0, RECLAIM_DIRECT, 1000); /* outside of the scope: no cgroup is named */
	make();
	assert_int_equal(all.n_neighbours, RECLAIM_NEIGHBOURS);
	assert_int_equal(all.neighbours[0].row.cgroup_id, 2);
	assert_string_equal(all.neighbours[0].row.path, "/c2");
	assert_int_equal(all.neighbours[0].count, 102);
	assert_int_equal(all.neighbours[0].kind_ns[RECLAIM_LIMIT], 200 * MSEC);
	assert_int_equal(reclaim_times_search_ns(&all.neighbours[0]), 204 * MSEC);
	assert_int_equal(all.neighbours[1].row.cgroup_id, 99);
	assert_null(all.neighbours[1].row.path);
	assert_int_equal(all.neighbours[2].row.cgroup_id, 9);
	assert_int_equal(all.more_neighbours, 4);
	assert_int_equal(all.more.count, 3 + 4 + 5 + 6);
	assert_int_equal(all.items[0].everybody_count, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 1000);
}

/* More pairs than lines. */
static void test_rest(void **state)
{
	for (uint32_t i = 0; i < RECLAIM_PARTS + 3; i++) {
		add(&now, 1, RECLAIM_THROTTLE, i + 1);
		now.keys[i].device = VDA + 16 * i;
	}
	make();
	assert_int_equal(all.count, RECLAIM_PARTS);
	assert_int_equal(all.rest, 3);
	assert_int_equal(all.rest_time.count, 1 + 2 + 3);
	assert_int_equal(all.items[0].own.count, RECLAIM_PARTS + 3);
	assert_int_equal(reclaim_times_sum(&all).count,
			 (RECLAIM_PARTS + 3) * (RECLAIM_PARTS + 4) / 2);
}

/* Words that a taken-over consumer may have written into the tables. */
static void test_insane(void **state)
{
	add(&now, 1, RECLAIM_DIRECT, 1);
	now.keys[0].kind = RECLAIM_KINDS_;
	add_open(&before, 1, RECLAIM_DIRECT, UINT64_MAX);
	before.open_keys[0].kind = 77;
	add_open(&now, 2, RECLAIM_DIRECT, UINT64_MAX);
	now.open_keys[0].kind = UINT32_MAX;
	make();
	assert_int_equal(all.count, 0);
	reclaim_times_done(&all);
	now.open_keys[0].kind = RECLAIM_DIRECT;
	make();
	assert_int_equal(all.count, 1);
	assert_int_equal(all.items[0].own.open_ns, 0);
}

/* Fills a reading with `n` sums, and with four open stretches for each. */
static void fill(struct reclaim_reading *read, uint32_t n)
{
	read->keys = calloc(n, sizeof(*read->keys));
	read->sums = calloc(n, sizeof(*read->sums));
	read->open_keys = calloc(4ul * n, sizeof(*read->open_keys));
	read->open = calloc(4ul * n, sizeof(*read->open));
	assert_true(read->keys && read->sums && read->open_keys && read->open);
	read->n_sums = n;
	read->n_open = 4 * n;
	for (uint32_t i = 0; i < n; i++) {
		read->keys[i] = (struct reclaim_key){ .cgroup_id = n - i, .slot = slot_of(n - i) };
		read->sums[i] = (struct reclaim_sums){ .count = 1, .time_ns = 2 * MSEC };
	}
	for (uint32_t i = 0; i < 4 * n; i++) {
		read->open_keys[i] = (struct reclaim_open_key){ .tid = 4 * n - i };
		read->open[i] = (struct reclaim_open){ .since_ns = read->at_ns, .cgroup_id = i };
	}
}

/* Returns the CPU time for readings of that size, the least of three. */
static double take_ns(uint32_t n)
{
	struct reclaim_reading a = { .at_ns = BEGIN }, b = { .at_ns = END };
	struct timespec begin, end;
	double least = 0, ns;

	fill(&a, n);
	fill(&b, n);
	for (int i = 0; i < 3; i++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		assert_int_equal(reclaim_times_make(&a, &b, &owner, &all), 0);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		reclaim_times_done(&all);
		ns = (double)(end.tv_sec - begin.tv_sec) * 1e9 +
		     (double)(end.tv_nsec - begin.tv_nsec);
		least = least == 0 || ns < least ? ns : least;
	}
	reclaim_maps_forget(&a);
	reclaim_maps_forget(&b);
	return least;
}

/* Full tables take no more than their size times its logarithm: four times as much, 4.7 times. */
static void test_full(void **state)
{
	double small = take_ns(1024), large = take_ns(4096);

	print_message("# %.1f ms, and of four times as much %.1f ms\n", small / 1e6, large / 1e6);
	assert_true(large < small * 9);
}

UNIT_TESTS(reclaim_times)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_difference, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clipped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_orphans, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_neighbours, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_insane, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
