/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the BTF of the kernel that the test runs on. */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <linux/btf.h>

#include "loader/preflight/preflight_btf.h"

static void what_every_kernel_has(void **state)
{
	struct preflight_btf b = { 0 };

	assert_int_equal(preflight_btf_bytes(&b), 0);
	assert_int_equal(preflight_btf_load(&b), 0);
	assert_int_equal(preflight_btf_load(&b), 0);
	assert_true(preflight_btf_bytes(&b) > 1 << 20);
	assert_true(preflight_btf_find(&b, BTF_KIND_STRUCT, "task_struct") > 0);
	assert_true(preflight_btf_find(&b, BTF_KIND_FUNC, "bpf_find_vma") > 0);
	assert_true(preflight_btf_has_members(&b, "task_struct"));
	/* void (*)(void *data, bool preempt, struct task_struct *prev, ...) */
	assert_true(preflight_btf_takes_pointer(&b, "btf_trace_sched_switch", 0));
	assert_false(preflight_btf_takes_pointer(&b, "btf_trace_sched_switch", 1));
	assert_true(preflight_btf_takes_pointer(&b, "btf_trace_sched_switch", 2));
	assert_false(preflight_btf_takes_pointer(&b, "btf_trace_sched_switch", 99));
	assert_int_equal(preflight_btf_arguments(&b, "btf_trace_sched_switch"), 5);
	preflight_btf_done(&b);
	preflight_btf_done(&b);
}

static void what_none_has(void **state)
{
	struct preflight_btf b = { 0 };

	assert_int_equal(preflight_btf_find(&b, BTF_KIND_FUNC, "task_struct"), -ENOENT);
	assert_int_equal(preflight_btf_find(&b, BTF_KIND_STRUCT, "no_such_struct"), -ENOENT);
	assert_false(preflight_btf_has_members(&b, "no_such_struct"));
	assert_false(preflight_btf_takes_pointer(&b, "btf_trace_no_such", 0));
	assert_int_equal(preflight_btf_arguments(&b, "btf_trace_no_such"), 0);
	/* A typedef, but of no pointer to a function. */
	assert_false(preflight_btf_takes_pointer(&b, "pid_t", 0));
	preflight_btf_done(&b);
}

/* Without it every question has the one answer, and nothing is read again. */
static void without(void **state)
{
	struct preflight_btf b = { .error = EACCES };

	assert_int_equal(preflight_btf_load(&b), -EACCES);
	assert_int_equal(preflight_btf_find(&b, BTF_KIND_STRUCT, "task_struct"), -EACCES);
	assert_false(preflight_btf_has_members(&b, "task_struct"));
	assert_false(preflight_btf_takes_pointer(&b, "btf_trace_sched_switch", 0));
	assert_int_equal(preflight_btf_bytes(&b), 0);
	preflight_btf_done(&b);
}

UNIT_TESTS(preflight_btf)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_every_kernel_has),
		cmocka_unit_test(what_none_has),
		cmocka_unit_test(without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
