/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of a process that has gone. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "consumer/discovery/process_match.h"

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

static struct process *made(uint32_t tgid)
{
	struct process *p;

	assert_int_equal(process_get(&fake->a.processes, tgid, 5, &p), 0);
	return p;
}

/* Once, however often it is seen to be gone. */
static void test_announced(void **state)
{
	struct process *p;

	if (!fake)
		skip();
	p = made(100);
	p->announced = true;
	strcpy(p->comm, "node");
	process_match_gone(&fake->a.discovery, p);
	process_match_gone(&fake->a.discovery, p);
	assert_int_equal(fake->a.processes.gone, 1);
	assert_int_equal(fake_count(fake, "process.exit"), 1);
}

/* Who was never announced leaves without a word. */
static void test_unannounced(void **state)
{
	if (!fake)
		skip();
	process_match_gone(&fake->a.discovery, made(100));
	assert_int_equal(fake_count(fake, "process.exit"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_announced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unannounced, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
