/* SPDX-License-Identifier: BSD-2-Clause */
/* The waits that the recorder keeps, their length, and those that it gives up. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_recorder.h"
#include "shared/tools/macro.h"

#define MS    NSEC_PER_MSEC
#define SLOT  1
#define EPOCH 3
#define TID   77

static struct wait_recorder recorder;
static struct look_pass pass;

static int setup(void **state)
{
	wait_recorder_init(&recorder, WAIT_RECORDER_BYTES);
	pass = (struct look_pass){ 0 };
	return 0;
}

static int teardown(void **state)
{
	wait_recorder_done(&recorder);
	assert_int_equal(wait_recorder_bytes(&recorder), 0);
	return 0;
}

static void at(uint64_t ms)
{
	pass = (struct look_pass){ .number = pass.number + 1, .began_ns = ms * MS, .all = true };
}

static void see_frames(uint32_t tid, uint64_t switches, uint16_t frames, struct module *module)
{
	struct look_record record = {
		.head = { .tid = tid, .slot = SLOT, .time_ns = pass.began_ns },
		.switches = switches,
	};
	struct stack_sample *h = new_stack_sample(2, frames, module);
	struct look_seen seen = { .head = &record.head, .record = &record, .sample = h };

	h->tid = tid;
	h->slot = SLOT;
	h->epoch = EPOCH;
	h->wait = WAIT_BLOCKED + WAIT_LOCK;
	wait_recorder_seen(&recorder, &pass, &seen);
	free(h);
}

static void see(uint32_t tid, uint64_t switches)
{
	see_frames(tid, switches, 0, NULL);
}

static void see_again(uint32_t tid)
{
	struct look_head head = {
		.tid = tid, .slot = SLOT, .time_ns = pass.began_ns, .flags = LOOK_AS_BEFORE
	};
	struct look_seen seen = { .head = &head };

	wait_recorder_seen(&recorder, &pass, &seen);
}

/* Returns whether all have to be reported again. */
static bool passed(void)
{
	return wait_recorder_passed(&recorder, &pass);
}

struct found {
	size_t open, over;
	struct recorded_wait last; /* of those that are over */
	struct recorded_wait last_open;
};

static void note(void *context, const struct recorded_wait *wait, bool open)
{
	struct found *f = context;

	*(open ? &f->open : &f->over) += 1;
	*(open ? &f->last_open : &f->last) = *wait;
}

static struct found each(uint64_t from_ms)
{
	struct found f = { 0 };

	wait_recorder_each(&recorder, from_ms * MS, note, &f);
	return f;
}

/* An unchanged thread waits on; an unreported thread has ended its wait, half of the time ago. */
static void test_ends(void **state)
{
	struct found f;

	at(1000);
	see(TID, 5);
	assert_false(passed());
	at(5000);
	see_again(TID);
	passed();
	f = each(0);
	assert_int_equal(f.open, 1);
	assert_int_equal(f.last_open.from_ns, 1000 * MS);
	assert_int_equal(f.last_open.seen_ns, 5000 * MS);
	at(9000);
	passed();
	f = each(0);
	assert_int_equal(f.open, 0);
	assert_int_equal(f.over, 1);
	assert_int_equal(f.last.to_ns, 7000 * MS);
	assert_int_equal(each(7000).over, 0);
	wait_recorder_expire(&recorder, 7001 * MS);
	assert_int_equal(each(0).over, 0);
}

/* Between two waits half of the time goes to each; also to one that began since the last pass. */
static void test_halves(void **state)
{
	struct found f;

	at(1000);
	passed();
	at(5000);
	see(TID, 5);
	passed();
	at(9000);
	see(TID, 6);
	passed();
	f = each(0);
	assert_int_equal(f.last.from_ns, 3000 * MS);
	assert_int_equal(f.last.to_ns, 7000 * MS);
	assert_int_equal(f.last_open.from_ns, 7000 * MS);
}

/* A cut pass proves nothing about left-out threads. */
static void test_cut(void **state)
{
	uint64_t cut;

	at(1000);
	see(TID, 5);
	passed();
	at(5000);
	pass.cut = true;
	passed();
	assert_int_equal(each(0).open, 1);
	assert_int_equal(wait_recorder_count(&recorder, 1000 * MS, 5001 * MS, &cut), 2);
	assert_int_equal(cut, 1);
	assert_int_equal(wait_recorder_count(&recorder, 1001 * MS, 5000 * MS, &cut), 0);
}

/* A session's own passes end no other wait, and their reports are the session's. */
static void test_session_pass(void **state)
{
	at(1000);
	see(TID, 5);
	see(TID + 1, 5);
	passed();
	at(1050);
	pass.all = false;
	see(TID, 6);
	passed();
	assert_int_equal(each(0).open, 2);
	assert_int_equal(each(0).over, 0);
	at(5000);
	see_again(TID);
	see_again(TID + 1);
	passed();
	assert_int_equal(each(0).open, 2);
	assert_int_equal(each(0).over, 0);
}

/* Another thread with the number of one that has ended is not it. */
static void test_another_thread(void **state)
{
	struct look_record record = { .head = { .tid = TID, .slot = SLOT, .time_ns = 5000 * MS },
				      .switches = 5 };
	struct stack_sample *h = new_stack_sample(2, 0, NULL);
	struct look_seen seen = { .head = &record.head, .record = &record, .sample = h };

	at(1000);
	see(TID, 5);
	passed();
	at(5000);
	h->tid = TID;
	h->slot = SLOT;
	h->epoch = EPOCH;
	h->start_ns = 4711;
	h->wait = WAIT_BLOCKED + WAIT_LOCK;
	wait_recorder_seen(&recorder, &pass, &seen);
	passed();
	assert_int_equal(each(0).over, 1);
	assert_int_equal(each(0).open, 1);
	free(h);
}

/* A thread of a pool costs no stack of its own; its module is held as long as the stack is kept. */
static void test_shared_stacks(void **state)
{
	struct module module = { 0 };
	size_t one;

	at(1000);
	see_frames(1, 5, 30, &module);
	one = recorder.stacks.bytes;
	for (uint32_t tid = 2; tid <= 1000; tid++)
		see_frames(tid, tid, 30, &module);
	passed();
	assert_int_equal(recorder.stacks.bytes, one);
	assert_int_equal(module.holds, 30);
	at(5000);
	see_frames(1, 5, 31, &module); /* walked better */
	passed();
	assert_int_equal(module.holds, 61);
	assert_int_equal(each(0).over, 999);
	wait_recorder_expire(&recorder, 4000 * MS);
	assert_int_equal(module.holds, 31);
	wait_recorder_done(&recorder);
	assert_int_equal(module.holds, 0);
}

/* What is over gives way when memory is full, and is counted for its slot and time. */
static void test_evicts(void **state)
{
	uint64_t switches = 1;

	wait_recorder_done(&recorder);
	wait_recorder_init(&recorder, 64 << 10);
	for (uint64_t ms = 1000; ms <= 60000; ms += 4000) {
		at(ms);
		for (uint32_t tid = 1; tid <= 100; tid++)
			see(tid, switches);
		switches++;
		passed();
		assert_true(wait_recorder_bytes(&recorder) < (64 << 10) + 4096);
	}
	assert_int_equal(each(0).open, 100);
	assert_int_equal(each(0).over + recorder.evicted, 14 * 100);
	assert_true(recorder.evicted > 0);
	assert_int_equal(wait_recorder_lost(&recorder, SLOT, EPOCH, 60000 * MS), 0);
	assert_true(wait_recorder_lost(&recorder, SLOT, EPOCH, 0) > 0);
	assert_true(wait_recorder_lost(&recorder, SLOT, EPOCH, 0) <= recorder.evicted);
	assert_int_equal(wait_recorder_lost(&recorder, SLOT, EPOCH + 1, 0), 0);
	assert_int_equal(wait_recorder_lost(&recorder, SLOT + 1, EPOCH, 0), 0);
}

/* A thread without room is counted at each look that reports it. */
static void test_full(void **state)
{
	wait_recorder_done(&recorder);
	wait_recorder_init(&recorder, 16 << 10);
	at(1000);
	for (uint32_t tid = 1; tid <= 1000; tid++)
		see(tid, 1);
	assert_false(passed());
	assert_in_range(each(0).open, 10, 500);
	assert_int_equal(each(0).open + wait_recorder_lost(&recorder, SLOT, EPOCH, 1000 * MS),
			 1000);
	/* It is as before, of which nothing is known; another report of all would not help. */
	at(5000);
	see_again(1000);
	assert_false(passed());
}

/* An unchanged thread without a known report is reported again. */
static void test_unknown(void **state)
{
	at(1000);
	see_again(TID);
	assert_true(passed());
	at(5000);
	see(TID, 5);
	assert_false(passed());
	assert_int_equal(each(0).open, 1);
}

UNIT_TESTS(wait_recorder)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_halves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_session_pass, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shared_stacks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_evicts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
