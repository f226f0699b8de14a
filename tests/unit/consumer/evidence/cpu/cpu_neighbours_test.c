/* SPDX-License-Identifier: BSD-2-Clause */
/* The signal `neighbours`: when it counts, its ledger, and why it does not run. */
#include <bpf/bpf.h>
#include <stdlib.h>

#include "consumer/evidence/cpu/neighbours.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#define OWN (1ULL << 50) /* an id that no cgroup of the machine has */

static struct fake *fake;
static const struct signal_target target = { .cgroup_id = OWN, .cgroup = "/own", .slot = 1 };

static int begin_test(void **state)
{
	fake = fake_new();
	return 0;
}

static int end_test(void **state)
{
	if (fake)
		fake_free(fake);
	return 0;
}

static void have_had(uint64_t id, uint64_t cpu_ms)
{
	struct neighbour n = { .cpu_ns = cpu_ms * NSEC_PER_MSEC, .tgid = 1, .slot = NO_SLOT };

	assert_int_equal(bpf_map_update_elem(fake->a.pins.neighbours_fd, &id, &n, BPF_ANY), 0);
}

/* Time of cgroups that found no room, and of those that the loader hides. */
static void have_totals(uint64_t full_ms, uint64_t hidden_ms)
{
	uint32_t zero = 0, cpus = fake->a.pins.abi.cpus_possible;
	struct totals *each = calloc(cpus, sizeof(*each));

	assert_non_null(each);
	each[0] = (struct totals){ .neighbours_full_ns = full_ms * NSEC_PER_MSEC,
				   .neighbours_hidden_ns = hidden_ms * NSEC_PER_MSEC };
	assert_int_equal(bpf_map_update_elem(fake->a.pins.totals_fd, &zero, each, BPF_ANY), 0);
	free(each);
}

static struct signal *begin_signal(void)
{
	const struct signal_host *host;
	struct signal *s;

	if (!fake)
		skip();
	host = &fake->a.sessions.host;
	s = signals_new(SIGNAL_NEIGHBOURS, host, &target);
	assert_non_null(s);
	s->kind->begin(s, host, &target);
	return s;
}

static void end_signal(struct signal *s)
{
	s->kind->end(s, &fake->a.sessions.host, &target);
	assert_int_equal(fake->control.sessions, 0);
	s->kind->close(s, &fake->a.sessions.host, &target);
}

static void test_ledger_closes(void **state)
{
	struct signal *s = begin_signal();

	assert_null(s->off_reason);
	assert_int_equal(fake->control.sessions, 1);
	have_had(OWN, 30);
	have_had(OWN + 1, 50);
	have_totals(0, 7);
	end_signal(s);
	assert_int_equal(s->counted->attempted, 30 + 50 + 7);
	assert_int_equal(s->counted->emitted, 30 + 50 + 7);
	assert_int_equal(ledger_lost(s->counted), 0);
	assert_int_equal(((const struct neighbours *)s->evidence)->own_ns, 30 * NSEC_PER_MSEC);
	assert_true(((const struct neighbours *)s->evidence)->lasted_ns > 0);
	signals_free(s);
}

static void test_full_map_is_a_loss(void **state)
{
	struct signal *s = begin_signal();

	have_had(OWN + 1, 50);
	have_totals(20, 0);
	end_signal(s);
	assert_int_equal(s->counted->attempted, 70);
	assert_int_equal(s->counted->emitted, 50);
	assert_int_equal(s->counted->lost[DROP_NEIGHBOURS_FULL], 20);
	signals_free(s);
}

/* Without a tick there is nothing to count by. */
static void test_no_ticks(void **state)
{
	struct signal *s;

	if (!fake)
		skip();
	fake->a.pins.abi.cpus_sampled = 0;
	s = begin_signal();
	assert_non_null(s->off_reason);
	assert_int_equal(fake->control.sessions, 0);
	end_signal(s);
	assert_null(s->counted);
	assert_null(s->evidence);
	assert_non_null(s->off_reason);
	signals_free(s);
}

static void test_unreadable(void **state)
{
	struct signal *s;
	int fd;

	if (!fake)
		skip();
	fd = fake->a.pins.neighbours_fd;
	fake->a.pins.neighbours_fd = -1;
	s = begin_signal();
	assert_non_null(s->off_reason);
	fake->a.pins.neighbours_fd = fd;
	end_signal(s);
	assert_non_null(s->off_reason);
	assert_null(s->evidence);
	signals_free(s);
}

UNIT_TESTS(cpu_neighbours)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ledger_closes, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_full_map_is_a_loss, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_no_ticks, begin_test, end_test),
		cmocka_unit_test_setup_teardown(test_unreadable, begin_test, end_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
