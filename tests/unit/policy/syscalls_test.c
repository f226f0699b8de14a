/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "policy/syscalls.h"

static const struct syscalls_row *find(enum policy_process process, const char *key)
{
	const struct syscalls_row *rows;
	size_t n;

	rows = syscalls_rows(&n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].process == process && strcmp(rows[i].key, key) == 0)
			return &rows[i];
	return NULL;
}

static bool any(enum policy_process process, int number)
{
	const struct syscalls_row *rows;
	size_t n;

	rows = syscalls_rows(&n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].process == process && rows[i].flag == 0 && rows[i].number == number)
			return true;
	return false;
}

static void keys_and_filters(void **state)
{
	const struct syscalls_row *row = find(POLICY_CONSUMER, "bpf(BPF_MAP_UPDATE_BATCH)");

	assert_non_null(row);
	assert_int_equal(row->number, SYS_bpf);
	assert_int_equal(row->n_filters, 1);
	assert_int_equal(row->filters[0].index, 0);
	assert_int_equal(row->filters[0].value, BPF_MAP_UPDATE_BATCH);
	assert_int_equal(find(POLICY_CONSUMER, "ioctl('T' << 8)")->error, ENOTTY);
	assert_int_equal(find(POLICY_CONSUMER, "connect")->flag,
			 POLICY_UNIX_OUTPUT | POLICY_USES_BROKER);
	assert_true(find(POLICY_CONSUMER, "tgkill(self)")->self);
	assert_true(find(POLICY_LOADER, "bpf")->unless);
	assert_int_equal(find(POLICY_LOADER, "bpf")->filters[0].value, BPF_BTF_GET_NEXT_ID);
}

/* Every row has its reason; a process without the call has no row of it. */
static void reasons_and_gaps(void **state)
{
	/* The loader may make a thread, and the broker a process. */
	static const int never[] = { SYS_clone,	 SYS_clone3, SYS_execve, SYS_ptrace,
				     SYS_setuid, SYS_chroot, SYS_kill,	 SYS_socket };
	const struct syscalls_row *rows;
	size_t n;

	rows = syscalls_rows(&n);
	for (size_t i = 0; i < n; i++) {
		assert_true(strlen(rows[i].reason) > 3);
		assert_true(rows[i].n_filters <= 2);
	}
	for (int p = POLICY_LOADER; p <= POLICY_RESOLVER; p++)
		for (size_t i = p == POLICY_LOADER ? 2 : 0;
		     p != POLICY_BROKER && i < sizeof(never) / sizeof(never[0]); i++)
			assert_false(any((enum policy_process)p, never[i]));
	assert_int_equal(find(POLICY_LOADER, "clone(THREAD_FLAGS)")->n_filters, 1);
	assert_int_equal(find(POLICY_LOADER, "clone(THREAD_FLAGS)")->filters[0].mask, UINT32_MAX);
	assert_true(find(POLICY_LOADER, "clone(THREAD_FLAGS)")->filters[0].value & CLONE_THREAD);
	assert_int_equal(find(POLICY_LOADER, "clone3(ENOSYS)")->error, ENOSYS);
	assert_false(any(POLICY_RESOLVER, SYS_write));
	assert_false(any(POLICY_CONSUMER, SYS_mount));
	assert_false(any(POLICY_CONSUMER, SYS_perf_event_open));
}

/* The consumer's bpf(2) rows are element commands, and there is no row without a filter. */
static void bpf_is_elements_only(void **state)
{
	const struct syscalls_row *rows;
	size_t n;

	rows = syscalls_rows(&n);
	for (size_t i = 0; i < n; i++) {
		if (rows[i].process != POLICY_CONSUMER || rows[i].number != SYS_bpf)
			continue;
		assert_int_equal(rows[i].n_filters, 1);
		assert_true(rows[i].filters[0].value != BPF_MAP_CREATE);
		assert_true(strstr(rows[i].key, "ELEM") || strstr(rows[i].key, "BATCH") ||
			    strstr(rows[i].key, "NEXT_KEY"));
	}
}

static void unknown_row(void **state)
{
	assert_int_equal(policy_seccomp_without(POLICY_CONSUMER, 0, "no such row"), -ENOENT);
}

UNIT_TESTS(syscalls)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_and_filters),
		cmocka_unit_test(reasons_and_gaps),
		cmocka_unit_test(bpf_is_elements_only),
		cmocka_unit_test(unknown_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
