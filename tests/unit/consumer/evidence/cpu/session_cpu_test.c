/* SPDX-License-Identifier: BSD-2-Clause */
/* The place of CPU time: each sample in one place, and in all of them together. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/cpu/session_cpu.h"
#include "shared/json/jsonw.h"

static struct session_cpu *cpu;

static int setup(void **state)
{
	cpu = calloc(1, sizeof(*cpu));
	return cpu ? 0 : -1;
}

static int teardown(void **state)
{
	free(cpu);
	return 0;
}

/* Ten samples of two kernel frames; `entry` is the outer one. */
static void add(uint32_t call, uint32_t flags, enum phase phase, const char *entry)
{
	const struct named_frame frames[] = { { .fn = "leaf" }, { .fn = entry }, { .fn = "main" } };
	const struct stack stack = {
		.count = 10,
		.weight_ns = 1000,
		.call = call,
		.flags = flags,
		.phase = (uint8_t)phase,
		.kernel_frames = flags & SAMPLE_IN_USER ? 0 : 2,
		.user_frames = 1,
	};

	session_cpu_add(cpu, &stack, frames, 3);
}

static uint64_t sum(void)
{
	return cpu->user + cpu->calls + cpu->compat + cpu->fault + cpu->interrupt + cpu->kernel;
}

static void test_places(void **state)
{
	uint64_t weight_ns;

	add(7, 0, PHASE_DURING, "entry_SYSCALL_64_after_hwframe");
	add(7, 0, PHASE_DURING, "asm_sysvec_apic_timer_interrupt"); /* in the call */
	add(ACCOUNT_CALL_NONE, SAMPLE_IN_USER, PHASE_DURING, "f");
	add(ACCOUNT_CALL_NONE, 0, PHASE_DURING, "asm_exc_page_fault");
	add(ACCOUNT_CALL_NONE, 0, PHASE_DURING, "el0t_64_sync");
	add(ACCOUNT_CALL_NONE, 0, PHASE_DURING, NULL); /* no name */
	add(ACCOUNT_CALL_NONE, 0, PHASE_DURING, "asm_sysvec_apic_timer_interrupt");
	add(ACCOUNT_CALL_NONE, 0, PHASE_DURING, "asm_common_interrupt");
	add(ACCOUNT_CALL_NONE, 0, PHASE_DURING, "fred_extint");
	add(ACCOUNT_CALL_NONE, 0, PHASE_DURING, "el0t_64_irq_handler");
	add(ACCOUNT_CALL_KERNEL, SAMPLE_KTHREAD, PHASE_DURING, "ret_from_fork");
	add(ACCOUNT_CALL_COMPAT, 0, PHASE_DURING, "entry_INT80_compat");
	add(7, 0, PHASE_BEFORE, "f");
	assert_int_equal(cpu->all, 120);
	assert_int_equal(sum(), cpu->all);
	assert_int_equal(cpu->calls, 20);
	assert_int_equal(cpu->user, 10);
	assert_int_equal(cpu->fault, 30);
	assert_int_equal(cpu->interrupt, 40);
	assert_int_equal(cpu->kernel, 10);
	assert_int_equal(cpu->compat, 10);
	assert_int_equal(session_cpu_of(cpu, 7, &weight_ns), 20);
	assert_int_equal(weight_ns, 2000);
	assert_int_equal(session_cpu_of(cpu, ACCOUNT_CALL_NONE, &weight_ns), 30);
	assert_int_equal(session_cpu_of(cpu, 8, &weight_ns), 0);
	assert_int_equal(weight_ns, 0);
}

/* More calls than have a count of their own: the rest is counted together. */
static void test_bound(void **state)
{
	uint64_t weight_ns, samples = 0;

	for (uint32_t i = 0; i < SESSION_CPU_CALLS + 5; i++)
		add(i, 0, PHASE_DURING, "f");
	for (uint32_t i = 0; i < SESSION_CPU_CALLS + 5; i++)
		samples += session_cpu_of(cpu, i, &weight_ns);
	assert_int_equal(cpu->count, SESSION_CPU_CALLS);
	assert_int_equal(cpu->of_others, 50);
	assert_int_equal(samples + cpu->of_others, cpu->all);
}

/* Of each phase, before the trigger too; a phase without samples is not written. */
static void test_memory_stall(void **state)
{
	static const char written[] =
		"\"cpu_memory_stall\":{\"before\":{\"samples\":10,\"stalled\":10},"
		"\"during\":{\"samples\":20,\"stalled\":10}}";
	struct jsonw w;

	add(7, SAMPLE_MEMORY_STALL, PHASE_DURING, "f");
	add(ACCOUNT_CALL_NONE, SAMPLE_IN_USER, PHASE_DURING, "f");
	add(ACCOUNT_CALL_NONE, SAMPLE_MEMORY_STALL, PHASE_BEFORE, "f");
	assert_int_equal(cpu->phase[PHASE_DURING].samples, 20);
	assert_int_equal(cpu->phase[PHASE_DURING].stalled, 10);
	assert_int_equal(cpu->phase[PHASE_BEFORE].stalled, 10);
	jsonw_init(&w, 4096);
	jsonw_object(&w, NULL);
	session_cpu_write(cpu, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_non_null(memmem(w.data, w.bytes, written, sizeof(written) - 1));
	jsonw_done(&w);
}

UNIT_TESTS(session_cpu)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_stall, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
