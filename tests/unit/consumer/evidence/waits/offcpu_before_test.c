/* SPDX-License-Identifier: BSD-2-Clause */
/* The phases before the trigger: which part of a wait lies in which, and how the first look ends
 * it. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/cgroup/cgroups.h"
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/waits/offcpu_before.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/signals/timeline.h"

#define MS    NSEC_PER_MSEC
#define START 20000 /* ms */
#define SLOT  1
#define EPOCH 3
#define TID   77

static struct slot slots[SLOT + 2];
static struct pinned_maps pins;
static struct wait_recorder recorder;
static struct signal_stacks taken;
static struct offcpu_before before;
static struct signal_host host = { .kinds = evidence_kinds, .pins = &pins, .waits = &recorder };
static struct signal_target target;
static struct look_pass pass;

static int setup(void **state)
{
	pins = (struct pinned_maps){ .slots = slots, .abi = { .slots = SLOT + 2 } };
	slots[SLOT] = (struct slot){ .epoch = EPOCH };
	slots[SLOT + 1] = (struct slot){ .epoch = 8, .outer = SLOT + 1 };
	wait_recorder_init(&recorder, WAIT_RECORDER_BYTES);
	memset(&taken, 0, sizeof(taken));
	stack_table_init(&taken.stacks, NULL);
	wait_objects_init(&taken.objects);
	target = (struct signal_target){ .timeline = timeline_new(START * MS, 5000, 1000),
					 .slot = SLOT,
					 .epoch = EPOCH,
					 .start_ns = START * MS,
					 .pre_ms = 5000,
					 .onset_ms = 2000 };
	pass = (struct look_pass){ 0 };
	return 0;
}

static int teardown(void **state)
{
	offcpu_before_done(&before);
	wait_recorder_done(&recorder);
	assert_int_equal(recorder.stacks.bytes, 0);
	stack_table_done(&taken.stacks);
	wait_objects_done(&taken.objects);
	timeline_free(target.timeline);
	return 0;
}

/* How long the timeline shows the thread in a lock within a slot that begins at `ms`. */
static uint64_t shown_ms(int ms)
{
	struct stack_sample *h = new_stack_sample(4, 0, NULL);
	const struct timeline_pool *pool = timeline_pool(target.timeline, h);
	const uint64_t *row = pool->ns[ACCOUNT_LOCK];

	free(h);
	return row ? row[target.timeline->before + ms / 50] / MS : 0;
}

/* Makes a look's report of a thread, and gives it to the recorder, or to the signal. */
static void see_in(uint32_t slot, uint32_t epoch, uint64_t switches, uint16_t frames, bool first)
{
	struct look_record record = {
		.head = { .tid = TID, .slot = slot, .time_ns = pass.began_ns },
		.switches = switches,
	};
	struct stack_sample *h = new_stack_sample(frames, 0, NULL);
	struct look_seen seen = { .head = &record.head, .record = &record, .sample = h };

	h->tid = TID;
	h->slot = slot;
	h->epoch = epoch;
	h->wait = WAIT_BLOCKED + WAIT_LOCK;
	if (first)
		offcpu_before_found(&before, &seen);
	else
		wait_recorder_seen(&recorder, &pass, &seen);
	free(h);
}

static void look(uint64_t ms, uint64_t switches)
{
	pass = (struct look_pass){ .number = pass.number + 1, .began_ns = ms * MS, .all = true };
	if (switches)
		see_in(SLOT, EPOCH, switches, 4, false);
	wait_recorder_passed(&recorder, &pass);
}

static void begin(void)
{
	offcpu_before_begin(&before, &host, &target, &taken);
}

/* The session's first look, in which the thread has made so many switches; 0: it runs. */
static void first_look(uint64_t switches, uint16_t frames)
{
	pass = (struct look_pass){ .number = pass.number + 1, .began_ns = (START + 5) * MS };
	if (switches)
		see_in(SLOT, EPOCH, switches, frames, true);
	offcpu_before_passed(&before, false);
}

static uint64_t weight_ms(enum phase phase, uint64_t *ret_count)
{
	uint64_t ns = 0;

	*ret_count = 0;
	for (size_t i = 0; i < taken.stacks.count; i++) {
		const struct stack *stack = taken.stacks.items[i];

		if (stack->phase != phase)
			continue;
		ns += stack->weight_ns;
		*ret_count += stack->count;
	}
	assert_int_equal(taken.phase[phase].emitted, *ret_count);
	assert_int_equal(taken.phase[phase].attempted,
			 *ret_count + ledger_lost(&taken.phase[phase]));
	return ns / MS;
}

static void assert_weights(uint64_t before_ms, uint64_t looks, uint64_t onset_ms,
			   uint64_t onset_looks)
{
	uint64_t count;

	assert_int_equal(weight_ms(PHASE_BEFORE, &count), before_ms);
	assert_int_equal(count, looks);
	assert_int_equal(weight_ms(PHASE_ONSET, &count), onset_ms);
	assert_int_equal(count, onset_looks);
}

/* A wait that goes on is in each phase as long as the phase; looks between the phases prove it. */
static void test_all_along(void **state)
{
	look(START - 9000, 5);
	look(START - 4500, 5);
	look(START - 2500, 5);
	begin();
	first_look(5, 4);
	assert_weights(3000, 2, 2000, 1);
	assert_int_equal(before.passes, 2);
	assert_int_equal(shown_ms(-5000), 50);
	assert_int_equal(shown_ms(-50), 50);
	assert_int_equal(shown_ms(0), 0);
	assert_int_equal(target.timeline->looks[10], 1); /* at -4500 */
	assert_int_equal(target.timeline->looks[11], 0);
	assert_int_equal(taken.stacks.items[0]->threads, 1);
	assert_int_equal(before.calm_ns, 3000 * MS);
}

/* Of a watch that is younger than the pre-roll nothing is known before the first look. */
static void test_young(void **state)
{
	uint64_t count;

	look(START - 2800, 5);
	look(START - 2500, 5);
	begin();
	first_look(5, 4);
	assert_in_range(weight_ms(PHASE_BEFORE, &count), 800, 2999);
	assert_int_equal(before.calm_ns, weight_ms(PHASE_BEFORE, &count) * MS);
}

/* Where the first look finds another wait, half of the time goes to each. */
static void test_another(void **state)
{
	look(START - 9000, 5);
	look(START - 1000, 5);
	begin();
	first_look(6, 3);
	assert_weights(3000, 1, 1500 + 500, 2);
	assert_int_equal(taken.stacks.count, 3);
}

/* Where it runs, half of the time went to the wait. */
static void test_runs(void **state)
{
	look(START - 9000, 5);
	look(START - 1000, 5);
	begin();
	first_look(0, 0);
	assert_weights(3000, 1, 1500, 1);
	/* The timeline shows the looks, and half of the time between two looks around each. */
	assert_int_equal(shown_ms(-1050), 50);
	assert_int_equal(shown_ms(-1000), 25);
	assert_int_equal(shown_ms(-950), 0);
}

/* A wait that ended before counts until then. */
static void test_over(void **state)
{
	look(START - 9000, 5);
	look(START - 4000, 5);
	look(START - 2000, 0); /* it runs: the wait was over at -3000 */
	begin();
	first_look(0, 0);
	assert_weights(2000, 1, 0, 0);
}

/* A new wait is half of the time since the recorder's last look old. */
static void test_new(void **state)
{
	look(START - 1000, 0);
	begin();
	first_look(5, 4);
	assert_weights(0, 0, 500, 1);
	assert_int_equal(shown_ms(-50), 0); /* no look saw it there */
}

/* Nothing is made up where the recorder has not looked. */
static void test_no_look(void **state)
{
	begin();
	first_look(5, 4);
	assert_weights(0, 0, 0, 0);
	assert_int_equal(before.passes, 0);
}

/* Without any look of the session a wait counts until it was last seen. */
static void test_no_first(void **state)
{
	look(START - 9000, 5);
	look(START - 1000, 5);
	begin();
	offcpu_before_passed(&before, true);
	assert_weights(3000, 1, 1000, 1);
}

/*
 * A watch within the session's is its own; another one, or the earlier watch of the slot, is not.
 */
static void test_slots(void **state)
{
	pass = (struct look_pass){ .number = 1, .began_ns = (START - 4000) * MS, .all = true };
	see_in(SLOT + 1, 8, 5, 4, false);
	wait_recorder_passed(&recorder, &pass);
	begin();
	assert_int_equal(before.open.count, 1);
	offcpu_before_done(&before);
	slots[SLOT + 1].outer = 0;
	begin();
	assert_int_equal(before.open.count, 0);
	offcpu_before_done(&before);
	slots[SLOT + 1].outer = SLOT + 1;
	slots[SLOT + 1].epoch = 9;
	begin();
	assert_int_equal(before.open.count, 0);
}

/* What the recorder had no room for is a loss of the phase. */
static void test_losses(void **state)
{
	uint64_t count;

	wait_recorder_done(&recorder);
	wait_recorder_init(&recorder, 0);
	look(START - 5000, 5);
	look(START - 1000, 5);
	begin();
	first_look(5, 4);
	weight_ms(PHASE_BEFORE, &count);
	assert_int_equal(taken.phase[PHASE_BEFORE].lost[DROP_HELD], 1);
	assert_int_equal(taken.phase[PHASE_ONSET].lost[DROP_HELD], 1);
}

/* Another process than the one asked for is in no ledger. */
static void test_of_others(void **state)
{
	target.only_tgid = 4711;
	look(START - 9000, 5);
	look(START - 1000, 5);
	begin();
	first_look(5, 4);
	assert_weights(0, 0, 0, 0);
	assert_int_equal(taken.phase[PHASE_BEFORE].attempted, 0);
}

UNIT_TESTS(offcpu_before)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_along, setup, teardown),
		cmocka_unit_test_setup_teardown(test_young, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_new, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_look, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slots, setup, teardown),
		cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_others, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
