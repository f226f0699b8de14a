/* SPDX-License-Identifier: BSD-2-Clause */
/* The signal `syscall` with real maps; what the broker attaches is a descriptor. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "tests/unit/consumer/testing/signal_testing.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/time/accounts_hold.h"
#include "consumer/evidence/time/call_times.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "shared/tools/clock.h"

#define SLOT 2

static struct control control;
static struct pinned_maps pins;
static struct slot slots[SLOT + 1];
static struct signal_programs programs;
static struct account_holds accounts;
static struct signal_host host = {
	.kinds = evidence_kinds, .pins = &pins, .programs = &programs, .accounts = &accounts
};
static struct signal_target target;
static char path[] = "/tmp/trocar-unit-calls-XXXXXX";

static int setup(void **state)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	control.calls = 77; /* of a consumer that was killed */
	pins = (struct pinned_maps){ .slots = slots,
				     .control = &control,
				     .account_threads_path = path };
	pins.abi.slots = SLOT + 1;
	pins.abi.sched_info = 1;
	pins.abi.cpus_possible = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	pins.signal_fd[PINNED_MAP_accounts] =
		bpf_map_create(BPF_MAP_TYPE_HASH, "unit", sizeof(struct account_key),
			       sizeof(struct thread_times), 64, NULL);
	pins.signal_fd[PINNED_MAP_account_losses] = bpf_map_create(
		BPF_MAP_TYPE_PERCPU_ARRAY, "unit", 4, sizeof(struct slot_accounts), SLOT + 1, NULL);
	pins.signal_fd[PINNED_MAP_account_calls] =
		bpf_map_create(BPF_MAP_TYPE_PERCPU_HASH, "unit", sizeof(struct account_call_key),
			       sizeof(struct call_waits), 64, NULL);
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
	close(pins.signal_fd[PINNED_MAP_account_calls]);
	unlink(path);
	return 0;
}

static void put_waits(uint64_t waits)
{
	const struct account_call_key key = { SLOT, 7 };
	struct call_waits *each = calloc(pins.abi.cpus_possible, sizeof(*each));

	assert_non_null(each);
	each[0].waits = waits;
	each[0].wait_ns = waits * 1000000;
	assert_int_equal(
		bpf_map_update_elem(pins.signal_fd[PINNED_MAP_account_calls], &key, each, BPF_ANY),
		0);
	free(each);
}

/* What was left by others is removed, and the kernel side counts only while a session wants it. */
static void test_counts(void **state)
{
	struct signal *s = signals_new(SIGNAL_SYSCALL, &host, &target);
	json_object *whole, *root;

	if (pins.signal_fd[PINNED_MAP_accounts] < 0) {
		signals_free(s);
		skip();
		return;
	}
	put_waits(5);
	s->kind->attach(s, &host, &target);
	assert_null(s->off_reason);
	assert_int_equal(control.calls, 1);
	put_waits(3);
	s->kind->end(s, &host, &target);
	assert_int_equal(control.calls, 0);
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	assert_int_equal(s->counted->attempted, 3);
	assert_int_equal(s->counted->emitted, 3);
	assert_int_equal(((const struct call_times *)s->evidence)->count, 1);
	whole = written(s);
	root = json_object_object_get(whole, "syscall");
	assert_int_equal(json_object_get_int64(json_object_object_get(root, "wait_ms")), 3);
	json_object_put(whole);
	signals_free(s);
}

static void assert_reason(struct signal *s, const char *part)
{
	json_object *root = written(s);
	const char *reason = json_object_get_string(json_object_object_get(root, "syscall_reason"));

	assert_null(json_object_object_get(root, "syscall"));
	assert_non_null(reason);
	assert_non_null(strstr(reason, part));
	assert_int_equal(programs.of[SIGNAL_POOLS].holders, 0);
	json_object_put(root);
	signals_free(s);
}

/* Nothing is attached that could not report anything, nor a program with an unreadable map. */
static void test_without(void **state)
{
	struct signal *s;

	target.only_tgid = 5;
	s = signals_new(SIGNAL_SYSCALL, &host, &target);
	s->kind->attach(s, &host, &target);
	s->kind->end(s, &host, &target);
	assert_reason(s, "one process");
	target.only_tgid = 0;
	pins.abi.sched_info = 0;
	s = signals_new(SIGNAL_SYSCALL, &host, &target);
	s->kind->attach(s, &host, &target);
	assert_reason(s, "CONFIG_SCHEDSTATS");
	pins.abi.sched_info = 1;
	close(pins.signal_fd[PINNED_MAP_account_calls]);
	pins.signal_fd[PINNED_MAP_account_calls] = -1;
	s = signals_new(SIGNAL_SYSCALL, &host, &target);
	s->kind->attach(s, &host, &target);
	s->kind->end(s, &host, &target);
	assert_reason(s, "cannot be read");
	assert_int_equal(control.calls, 77);
}

UNIT_TESTS(syscall)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
