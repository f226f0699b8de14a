/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes with mappings that are read once more, and when. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "consumer/process/mappings_reread.h"
#include "shared/tools/clock.h"

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
	fake = NULL;
	return 0;
}

static struct process *made(uint32_t tgid, uint64_t start_ns)
{
	struct process *p;

	assert_int_equal(process_get(&fake->a.processes, tgid, start_ns, &p), 0);
	return p;
}

/* Read amid its start: once more a moment later, and not again after that. */
static void test_young(void **state)
{
	struct mappings_reread *r;
	struct process *p;

	if (!fake)
		skip();
	r = &fake->a.reread;
	p = made(100, 5);
	p->maps.read_ns = clock_mono_ns();
	mappings_reread_young(r, p);
	assert_int_equal(r->count, 0);
	p->exec_ns = p->maps.read_ns - NSEC_PER_MSEC;
	mappings_reread_young(r, p);
	assert_int_equal(r->count, 1);
	assert_int_equal(p->tried_ns, 0);
	mappings_reread_settle(r);
	assert_true(p->tried_ns > 0);
	assert_int_equal(r->count, 0);
	p->exec_ns = p->maps.read_ns - NSEC_PER_SEC;
	mappings_reread_young(r, p);
	assert_int_equal(r->count, 0);
}

/* A process with fresh mappings waits a moment. */
static void test_unmapped(void **state)
{
	static struct module module = { .holds = 1 };
	struct mappings_reread *r;
	struct process *p;

	if (!fake)
		skip();
	r = &fake->a.reread;
	p = made(100, 5);
	p->maps.items = calloc(1, sizeof(*p->maps.items));
	assert_non_null(p->maps.items);
	p->maps.items[0].module = &module;
	p->maps.count = 1;
	p->maps.read_ns = p->tried_ns = p->seen_ns = clock_mono_ns();
	mappings_reread_unmapped(r, p, p->maps.read_ns - 1);
	assert_int_equal(r->count, 0);
	mappings_reread_unmapped(r, p, p->maps.read_ns + 1);
	assert_true(p->unwind.left);
	assert_int_equal(r->count, 1);
	process_gone(&fake->a.processes, p);
	mappings_reread_unmapped(r, p, p->maps.read_ns + 1);
	assert_int_equal(r->count, 1);
}

/* A bounded number; a process that was freed in the meantime is skipped. */
static void test_full(void **state)
{
	struct mappings_reread *r;
	struct process *p;

	if (!fake)
		skip();
	r = &fake->a.reread;
	p = made(100, 5);
	p->exec_ns = p->maps.read_ns = clock_mono_ns();
	for (int i = 0; i < MAPPINGS_REREAD_MAX + 8; i++)
		mappings_reread_young(r, p);
	assert_int_equal(r->count, MAPPINGS_REREAD_MAX);
	process_gone(&fake->a.processes, p);
	processes_sweep(&fake->a.processes, UINT64_MAX);
	assert_null(process_find(&fake->a.processes, 100, 5));
	mappings_reread_settle(r);
	assert_int_equal(r->count, 0);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(mappings_reread)
{
	const struct CMUnitTest tests[] = {
		EACH(test_young),
		EACH(test_unmapped),
		EACH(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
