/* SPDX-License-Identifier: BSD-2-Clause */
/* A walk that comes late: it waits for the writer of a FIFO, as the kernel's for cgroup_mutex. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "consumer/watch/watch_tree.h"
#include "shared/tools/clock.h"

#define OUTER	 (1ULL << 40)
#define INNER	 (2ULL << 40)
#define NEWCOMER (3ULL << 40)
#define SOON_NS	 (2 * NSEC_PER_SEC) /* on a machine that others load */

static struct fake *fake;
static char fifo[256];

static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	assert_int_equal(cgroups_start(&fake->a.cgroups), 0);
	snprintf(fifo, sizeof(fifo), "%s/fifo", fake->dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fake->a.pins.watch_tree_path = fifo;
	return 0;
}

static int teardown(void **state)
{
	if (!fake)
		return 0;
	unlink(fifo);
	fake_free(fake);
	return 0;
}

static struct watches *watches(void)
{
	return &fake->a.watches;
}

static struct watch *get(uint64_t id)
{
	struct watch *w = NULL;
	char path[32];

	snprintf(path, sizeof(path), "/unit/%llu", (unsigned long long)(id >> 40));
	cgroups_learn(&fake->a.cgroups, id, path);
	return watch_get(watches(), id, 0, &w) == 0 ? w : NULL;
}

/* As the kernel side enters a cgroup below a watched one. */
static void enter_below(uint64_t id, const struct watch *w)
{
	const struct watch_entry entry = { .slot = w->slot };

	assert_int_equal(bpf_map_update_elem(fake->a.pins.watches_fd, &id, &entry, BPF_ANY), 0);
}

static bool is_own(uint64_t id, uint32_t slot)
{
	struct watch_entry entry;

	return bpf_map_lookup_elem(fake->a.pins.watches_fd, &id, &entry) == 0 &&
	       entry.slot == slot && entry.flags & WATCH_OWN;
}

/* A watch within another one, and the walk for it, which runs; *ret_inner may not be needed. */
static void begin_walk(struct watch **ret_inner)
{
	struct watch *inner;

	enter_below(INNER, get(OUTER));
	inner = get(INNER);
	assert_non_null(inner);
	watch_tree_settle(watches());
	assert_non_null(watches()->tree.running);
	if (ret_inner)
		*ret_inner = inner;
}

/* Lets the walk that runs come to its end, and takes that. */
static void let_walk(void)
{
	uint64_t number = watches()->tree.begun, until_ns = clock_mono_ns() + SOON_NS;
	int fd = open(fifo, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	close(fd);
	while (watches()->tree.ended < number && clock_mono_ns() < until_ns)
		watch_tree_settle(watches());
	assert_int_equal(watches()->tree.ended, number);
}

/* No caller waits for it beyond a moment; it ends nevertheless, and the next one begins. */
static void test_late(void **state)
{
	struct watch *outer, *inner;
	uint64_t began_ns;
	uint32_t slot;

	if (!fake)
		skip();
	outer = get(OUTER);
	assert_false(watches()->tree.due);
	enter_below(INNER, outer);
	inner = get(INNER);
	assert_true(watches()->tree.due && watch_tree_above(inner) == outer);
	began_ns = clock_mono_ns();
	watch_tree_settle(watches());
	watch_tree_settle(watches());
	assert_in_range(clock_mono_ns() - began_ns, 0, SOON_NS);
	assert_non_null(watches()->tree.running);
	assert_false(watches()->tree.due);
	slot = inner->slot;
	watch_remove(inner, "cgroup_removed");
	assert_true(watches()->tree.due);
	assert_false(watch_tree_is_free(watches(), slot));
	let_walk(); /* it began before the watch went */
	assert_int_equal(watches()->tree.begun, 2);
	assert_false(watch_tree_is_free(watches(), slot));
	let_walk();
	assert_true(watch_tree_is_free(watches(), slot));
	assert_null(watches()->tree.running);
}

/* What is entered meanwhile is there afterwards, whatever the walk did to its entry. */
static void test_entered_meanwhile(void **state)
{
	const uint64_t id = NEWCOMER;
	struct watch *w;

	if (!fake)
		skip();
	begin_walk(NULL);
	w = get(NEWCOMER);
	assert_true(is_own(NEWCOMER, w->slot));
	assert_int_equal(bpf_map_delete_elem(fake->a.pins.watches_fd, &id), 0);
	let_walk();
	assert_true(is_own(NEWCOMER, w->slot));
}

/* A watch that wants a slot which entries still name is not entered, and a scan tries again. */
static void test_slot_is_waited_for(void **state)
{
	struct watch *inner;

	if (!fake)
		skip();
	begin_walk(&inner);
	for (uint64_t i = 10; watches()->count < FAKE_SLOTS; i++)
		assert_non_null(get(i << 40));
	watch_remove(inner, "cgroup_removed");
	assert_null(get(NEWCOMER));
	assert_true(watches()->tree.wanted);
	assert_int_equal(fake_count(fake, "error"), 0); /* there is a slot */
	let_walk();
	let_walk();
	assert_false(watches()->tree.wanted);
	assert_non_null(get(NEWCOMER));
}

/* The agent ends while a walk runs. */
static void test_end(void **state)
{
	int fd;

	if (!fake)
		skip();
	begin_walk(NULL);
	watches_done(watches());
	fd = open(fifo, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

UNIT_TESTS(watch_tree)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_entered_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slot_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
