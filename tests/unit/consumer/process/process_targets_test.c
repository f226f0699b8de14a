/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's entry of a process. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "consumer/process/process_targets.h"

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

static int lookup(const struct process *p, struct target *ret_target)
{
	struct process_key key = { .tgid = p->tgid, .start_ns = p->start_ns };

	return bpf_map_lookup_elem(fake->a.pins.targets_fd, &key, ret_target);
}

/* The kernel's entry follows the rule; what the kernel itself wrote there stays. */
static void test_target(void **state)
{
	struct target target = { .flags = TARGET_MAPPED, .unwind = 3, .rule = NO_SLOT };
	struct process_key key = { .tgid = 101, .start_ns = 5 };
	struct process *p, *known;

	if (!fake)
		skip();
	fake_rules(fake, "{\"version\":1,\"rules\":["
			 "{\"name\":\"a\",\"match\":{\"comm\":\"x\"}},"
			 "{\"name\":\"b\",\"match\":{\"comm\":\"y\"}}]}");
	p = made(100, 5);
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	assert_int_equal(lookup(p, &target), -ENOENT);
	p->rule = &fake->a.active.set->rules->rules[1];
	assert_int_equal(process_targets_match(&fake->a.targets, p), 0);
	assert_int_equal(lookup(p, &target), 0);
	assert_int_equal(target.flags, TARGET_MATCHED | TARGET_REPORTED);
	assert_int_equal(target.rule, 1);
	assert_int_equal(target.generation, fake->a.active.set->generation);
	target = (struct target){ .flags = TARGET_MAPPED, .unwind = 3, .rule = NO_SLOT };
	assert_int_equal(bpf_map_update_elem(fake->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	known = made(101, 5);
	known->requested = true;
	assert_int_equal(process_targets_match(&fake->a.targets, known), 0);
	assert_int_equal(lookup(known, &target), 0);
	assert_int_equal(target.flags, TARGET_MAPPED | TARGET_MATCHED | TARGET_REPORTED);
	assert_int_equal(target.unwind, 3);
	known->requested = false;
	assert_int_equal(process_targets_match(&fake->a.targets, known), 0);
	assert_int_equal(lookup(known, &target), 0);
	assert_int_equal(target.flags, TARGET_MAPPED);
	p->rule = NULL;
}

/* Mapped or not, and the table: each leaves the rest as it is. No entry is made by that. */
static void test_set(void **state)
{
	struct target target = { .flags = TARGET_MATCHED, .rule = 3 };
	struct process_key key = { .tgid = 100, .start_ns = 5 };
	struct process *p, *unknown;

	if (!fake)
		skip();
	p = made(100, 5);
	unknown = made(101, 5);
	assert_int_equal(process_targets_set_mapped(&fake->a.targets, unknown, true), -ENOENT);
	assert_int_equal(process_targets_set_unwind(&fake->a.targets, unknown), -ENOENT);
	assert_int_equal(lookup(unknown, &target), -ENOENT);
	assert_int_equal(bpf_map_update_elem(fake->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	p->maps.image = 9;
	p->unwind.table = 7;
	assert_int_equal(process_targets_set_unwind(&fake->a.targets, p), 0);
	assert_int_equal(process_targets_set_mapped(&fake->a.targets, p, true), 0);
	assert_int_equal(lookup(p, &target), 0);
	assert_int_equal(target.flags, TARGET_MATCHED | TARGET_MAPPED);
	assert_int_equal(target.image, 9);
	assert_int_equal(target.unwind, 7);
	assert_int_equal(target.rule, 3);
	assert_int_equal(process_targets_set_mapped(&fake->a.targets, p, false), 0);
	assert_int_equal(lookup(p, &target), 0);
	assert_int_equal(target.flags, TARGET_MATCHED);
}

/* The table was published before a tick made the entry; one that was inherited stays. */
static void test_entry_younger_than_the_table(void **state)
{
	struct target target = { .rule = NO_SLOT, .unwind = 3 };
	struct process_key key = { .tgid = 100, .start_ns = 5 };
	struct process *p;

	if (!fake)
		skip();
	p = made(100, 5);
	assert_int_equal(bpf_map_update_elem(fake->a.pins.targets_fd, &key, &target, BPF_ANY), 0);
	assert_int_equal(process_targets_set_mapped(&fake->a.targets, p, true), 0);
	assert_int_equal(lookup(p, &target), 0);
	assert_int_equal(target.unwind, 3);
	p->unwind.table = 7;
	assert_int_equal(process_targets_set_mapped(&fake->a.targets, p, true), 0);
	assert_int_equal(lookup(p, &target), 0);
	assert_int_equal(target.unwind, 7);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(process_targets)
{
	const struct CMUnitTest tests[] = {
		EACH(test_target),
		EACH(test_set),
		EACH(test_entry_younger_than_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
