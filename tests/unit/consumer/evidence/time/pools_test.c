/* SPDX-License-Identifier: BSD-2-Clause */
/* The signal `pools` with a real map; what the broker attaches is a descriptor. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "tests/unit/consumer/testing/signal_testing.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/tools/clock.h"

#define SLOT 2

static struct pinned_maps pins;
static struct slot slots[SLOT + 1];
static struct signal_programs programs;
static struct account_holds accounts;
static struct signal_host host = {
	.kinds = evidence_kinds, .pins = &pins, .programs = &programs, .accounts = &accounts
};
static struct signal_target target;
static char path[] = "/tmp/trocar-unit-pools-XXXXXX";

static int setup(void **state)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	pins = (struct pinned_maps){ .slots = slots, .account_threads_path = path };
	pins.abi.slots = SLOT + 1;
	pins.abi.sched_info = 1;
	pins.abi.cpus_possible = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	pins.signal_fd[PINNED_MAP_accounts] =
		bpf_map_create(BPF_MAP_TYPE_HASH, "unit", sizeof(struct account_key),
			       sizeof(struct thread_times), 64, NULL);
	pins.signal_fd[PINNED_MAP_account_losses] = bpf_map_create(
		BPF_MAP_TYPE_PERCPU_ARRAY, "unit", 4, sizeof(struct slot_accounts), SLOT + 1, NULL);
	programs = (struct signal_programs){};
	accounts = (struct account_holds){};
	programs.of[SIGNAL_POOLS].fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	programs.of[SIGNAL_POOLS].n_fds = 1;
	target = (struct signal_target){ .slot = SLOT, .start_ns = clock_mono_ns() };
	return 0;
}

static int teardown(void **state)
{
	signal_programs_done(&programs);
	accounts_hold_done_all(&accounts);
	close(pins.signal_fd[PINNED_MAP_accounts]);
	close(pins.signal_fd[PINNED_MAP_account_losses]);
	unlink(path);
	return 0;
}

/* A thread that was born, waited 2 s and ended while the signal ran; the table is empty behind it.
 */
static void test_counts(void **state)
{
	struct account_key key = { .tid = 5 };
	struct thread_times times = { .account = {
					      .slot = SLOT, .flags = ACCOUNT_ENDED, .tgid = 5 } };
	struct time_account *a = &times.account;
	struct signal *s = signals_new(SIGNAL_POOLS, &host, &target);
	json_object *root, *pools;

	if (pins.signal_fd[PINNED_MAP_accounts] < 0) {
		signals_free(s);
		skip();
		return;
	}
	assert_non_null(s->off_reason);
	s->kind->attach(s, &host, &target);
	assert_null(s->off_reason);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 1);
	a->first_ns = a->born_ns = clock_mono_ns();
	a->since_ns = a->first_ns + 2 * NSEC_PER_SEC;
	a->part_ns[ACCOUNT_LOCK] = 2 * NSEC_PER_SEC;
	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_accounts], &key, &times, BPF_ANY), 0);
	s->kind->end(s, &host, &target);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	assert_true(bpf_map_lookup_elem(pins.signal_fd[PINNED_MAP_accounts], &key, &times) < 0);
	assert_int_equal(((const struct thread_pools *)s->evidence)->count, 1);
	assert_int_equal(s->counted->attempted, 1);
	assert_int_equal(s->counted->emitted, 1);
	root = written(s);
	pools = json_object_object_get(root, "pools");
	assert_int_equal(json_object_get_int64(json_object_object_get(pools, "born")), 1);
	assert_int_equal(json_object_get_int64(json_object_object_get(pools, "waited_ms")), 2000);
	assert_int_equal(json_object_get_int64(json_object_object_get(pools, "wall_ms")), 2000);
	json_object_put(root);
	signals_free(s);
}

static void assert_reason(struct signal *s, const char *part)
{
	json_object *root = written(s);
	const char *reason = json_object_get_string(json_object_object_get(root, "pools_reason"));

	assert_null(json_object_object_get(root, "pools"));
	assert_non_null(reason);
	assert_non_null(strstr(reason, part));
	assert_null(s->evidence);
	json_object_put(root);
	signals_free(s);
}

/* A session of one rule's processes in a slot that takes others too has no account of its own. */
static void test_of_others(void **state)
{
	struct signal *s = signals_new(SIGNAL_POOLS, &host, &target);

	if (pins.signal_fd[PINNED_MAP_accounts] < 0) {
		signals_free(s);
		skip();
		return;
	}
	s->kind->attach(s, &host, &target);
	target.shared = true;
	s->kind->end(s, &host, &target);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	assert_reason(s, "more of the cgroup");
}

/* Nothing is attached that could not report anything. */
static void test_without(void **state)
{
	struct signal *s;

	pins.abi.sched_info = 0;
	s = signals_new(SIGNAL_POOLS, &host, &target);
	s->kind->attach(s, &host, &target);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	assert_reason(s, "CONFIG_SCHEDSTATS");
	pins.abi.sched_info = 1;
	pins.account_threads_path = (char *)"/nowhere/account_threads";
	s = signals_new(SIGNAL_POOLS, &host, &target);
	s->kind->attach(s, &host, &target);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	assert_reason(s, "cannot be read");
}

UNIT_TESTS(pools)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
