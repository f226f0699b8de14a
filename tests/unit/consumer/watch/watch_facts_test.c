/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <stdio.h>

#include "consumer/watch/watch_facts.h"

static struct fake *fake;

static int setup(void **state)
{
	fake = fake_new();
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	return 0;
}

/* A watch of a cgroup that only the cache knows: each reading finds that it is gone. */
static struct watch *get(uint64_t id)
{
	struct watch *w;
	char path[32];

	snprintf(path, sizeof(path), "/unit/%u", (unsigned int)id);
	cgroups_learn(&fake->a.cgroups, id << 40, path);
	assert_int_equal(watch_get(&fake->a.watches, id << 40, 0, &w), 0);
	return w;
}

static void test_due(void **state)
{
	struct watches *ws;
	uint64_t now_ns = 10 * NSEC_PER_SEC;
	struct watch *w;

	if (!fake)
		skip();
	ws = &fake->a.watches;
	watch_facts_step(ws, now_ns);
	w = get(1);
	watch_facts_step(ws, now_ns); /* in the same second */
	assert_int_equal(w->facts.read_ns, 0);
	now_ns += WATCH_FACTS_EVERY_NS;
	watch_facts_step(ws, now_ns);
	assert_int_equal(w->facts.read_ns, now_ns);
	assert_int_equal(w->facts.count, 1);
	watch_facts_step(ws, now_ns + FACTS_APART_NS - 1);
	assert_int_equal(w->facts.read_ns, now_ns);
	watch_facts_step(ws, now_ns + 2 * FACTS_APART_NS);
	assert_int_equal(w->facts.count, 2);
}

/* The rest of a turn is read in the next, before files that were read. */
static void test_turns(void **state)
{
	struct watch *w[FAKE_SLOTS];
	struct watches *ws;
	uint64_t now_ns = 10 * NSEC_PER_SEC;
	uint64_t most = 0;

	if (!fake)
		skip();
	ws = &fake->a.watches;
	for (uint64_t i = 0; i < FAKE_SLOTS; i++)
		w[i] = get(i + 1);
	for (int turn = 0; turn < FAKE_SLOTS; turn++, now_ns += WATCH_FACTS_EVERY_NS)
		watch_facts_step(ws, now_ns);
	for (uint64_t i = 0; i < FAKE_SLOTS; i++) {
		assert_true(w[i]->facts.count > 0);
		most = MAX(most, (uint64_t)w[i]->facts.count);
	}
	for (uint64_t i = 0; i < FAKE_SLOTS; i++)
		assert_true(w[i]->facts.count + 1 >= most);
}

/* A session reads its own facts. */
static void test_session(void **state)
{
	struct session running;
	struct watches *ws;
	struct watch *w;

	if (!fake)
		skip();
	ws = &fake->a.watches;
	w = get(1);
	w->session = &running;
	watch_facts_step(ws, 10 * NSEC_PER_SEC);
	w->session = NULL;
	assert_int_equal(w->facts.read_ns, 0);
}

/* Of the root those processes are asked that match a rule and live. */
static void test_of_root(void **state)
{
	uint32_t pids[FACTS_PLACE_PIDS] = {};
	struct process *p[3];
	struct watches *ws;
	struct watch *root;

	if (!fake)
		skip();
	ws = &fake->a.watches;
	assert_int_equal(watch_facts_of_root(ws, pids), 0);
	assert_int_equal(watch_get(ws, fake->a.cgroups.root_id, 0, &root), 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(process_get(&fake->a.processes, 70 + i, 1000, &p[i]), 0);
	p[0]->watch = root;
	p[1]->watch = root;
	p[1]->gone_ns = 5;
	assert_int_equal(watch_facts_of_root(ws, pids), 1);
	assert_int_equal(pids[0], 70);
	p[1]->gone_ns = 0;
	assert_int_equal(watch_facts_of_root(ws, pids), 2);
	p[0]->watch = p[1]->watch = NULL;
}

UNIT_TESTS(watch_facts)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_due, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_root, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
