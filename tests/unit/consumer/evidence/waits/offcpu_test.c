/* SPDX-License-Identifier: BSD-2-Clause */
/* The signal `offcpu`: the weights of the stacks of looks, and the counts of its ledger. */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <stdlib.h>

#include "consumer/cgroup/cgroups.h"
#include "consumer/evidence/evidence_kinds.h"
#include "consumer/evidence/waits/look_coverage.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/rules/ruleset.h"
#include "consumer/sampling/looks.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/signals/timeline.h"

#define MS    NSEC_PER_MSEC
#define START (1000 * MS)
#define SLOT  1
#define TID   77

static struct control control;
static struct slot slots[SLOT + 1];
static char pin[] = "/dev/null";
static struct pinned_maps pins;
static struct cgroups cgroups;
static struct looks looks;
static struct signal_host host = {
	.kinds = evidence_kinds, .pins = &pins, .looks = &looks, .cgroups = &cgroups
};
static struct signal_target target;
static struct look_pass pass;
static uint32_t rule_id; /* of what is seen */

static int setup(void **state)
{
	pins = (struct pinned_maps){ .control = &control, .slots = slots, .looks_path = pin };
	slots[SLOT] = (struct slot){ .epoch = 3 };
	looks_init(&looks, &pins, NULL, 10, NULL, NULL);
	target = (struct signal_target){ .slot = SLOT,
					 .epoch = 3,
					 .start_ns = START,
					 .timeline = timeline_new(START, 0, 1000) };
	pass = (struct look_pass){};
	rule_id = 0;
	return 0;
}

static int teardown(void **state)
{
	timeline_free(target.timeline);
	return 0;
}

/* How long the timeline shows threads in a lock, in all or in the slot that begins at `ms`. */
static uint64_t shown_ms(int ms)
{
	struct stack_sample *h = new_stack_sample(4, 0, NULL);
	const uint64_t *row = timeline_pool(target.timeline, h)->ns[ACCOUNT_LOCK];
	uint64_t ns = 0;

	free(h);
	for (uint32_t i = 0; row && i < target.timeline->slots; i++)
		ns += ms < 0 || i == (uint32_t)ms / 50 ? row[i] : 0;
	return ns / MS;
}

static struct signal *begin(void)
{
	struct signal *s = signals_new(SIGNAL_OFFCPU, &host, &target);

	assert_non_null(s);
	s->kind->begin(s, &host, &target);
	assert_null(s->off_reason);
	assert_int_equal(slots[SLOT].looked, 1);
	return s;
}

/* A pass begins so long after the session. */
static void at(uint64_t ms)
{
	pass = (struct look_pass){ .number = pass.number + 1, .began_ns = START + ms * MS };
}

static void see_on(struct signal *s, uint32_t tid, uint64_t switches, uint16_t frames, uint8_t wait,
		   const struct look_on *on)
{
	struct look_record record = {
		.head = { .tid = tid, .slot = SLOT, .time_ns = pass.began_ns },
		.switches = switches,
		.on = *on,
	};
	struct stack_sample *h = new_stack_sample(frames, 0, NULL);
	struct look_seen seen = { .head = &record.head, .record = &record, .sample = h };

	h->tid = tid;
	h->rule_id = rule_id;
	h->wait = wait;
	h->time_ns = pass.began_ns;
	s->kind->look(s, &target, &pass, &seen);
	free(h);
}

static void see_as(struct signal *s, uint32_t tid, uint64_t switches, uint16_t frames, uint8_t wait)
{
	see_on(s, tid, switches, frames, wait, &(struct look_on){ 0 });
}

static void see(struct signal *s, uint64_t switches, uint16_t frames)
{
	see_as(s, TID, switches, frames, WAIT_BLOCKED + WAIT_LOCK);
}

static void see_again(struct signal *s)
{
	struct look_head head = {
		.tid = TID, .slot = SLOT, .time_ns = pass.began_ns, .flags = LOOK_AS_BEFORE
	};
	struct look_seen seen = { .head = &head };

	s->kind->look(s, &target, &pass, &seen);
}

static void passed(struct signal *s)
{
	s->kind->passed(s, &target, &pass);
}

/* Ends it after `ms`; the last pass comes a little later. */
static void end(struct signal *s, uint64_t ms)
{
	target.stop_ns = START + ms * MS;
	looks.pass = pass;
	s->kind->end(s, &host, &target);
	assert_false(s->kind->is_settled(s));
	at(ms + 3);
}

static const struct ledger *close_signal(struct signal *s)
{
	const struct ledger *l = &s->taken->phase[PHASE_DURING];

	s->kind->close(s, &host, &target);
	assert_int_equal(slots[SLOT].looked, 0);
	assert_int_equal(looks.holders, 0);
	assert_int_equal(l->attempted, l->emitted + ledger_lost(l));
	return l;
}

static uint64_t weight_ms(const struct signal *s, size_t i)
{
	assert_true(i < s->taken->stacks.count);
	return s->taken->stacks.items[i]->weight_ns / MS;
}

/* A thread that waits from before the session until after it weighs as long as the session. */
static void test_all_along(void **state)
{
	struct signal *s = begin();
	const struct ledger *l;

	at(2);
	see(s, 5, 4);
	passed(s);
	at(50);
	see_again(s);
	passed(s);
	at(700); /* the budget left passes out */
	see_again(s);
	passed(s);
	end(s, 1000);
	see_again(s);
	passed(s);
	assert_true(s->kind->is_settled(s));
	l = close_signal(s);
	assert_int_equal(s->taken->stacks.count, 1);
	assert_int_equal(weight_ms(s, 0), 1000);
	assert_int_equal(shown_ms(-1), 1000);
	assert_int_equal(shown_ms(400), 50);
	assert_int_equal(target.timeline->looks[0], 1);
	assert_int_equal(target.timeline->looks[1], 1);
	assert_int_equal(target.timeline->looks[2], 0);
	assert_int_equal(l->attempted, 4);
	assert_int_equal(l->emitted, 4);
	signals_free(s);
}

/* What the budget left out before a pass counts as many looks as this one made; not before the
 * first. */
static void test_left_out(void **state)
{
	struct signal *s = begin();
	const struct ledger *l;

	at(2);
	pass.skipped = 9;
	see(s, 5, 4);
	passed(s);
	at(700);
	pass.skipped = 12;
	see(s, 5, 4);
	see_as(s, TID + 1, 3, 4, WAIT_BLOCKED + WAIT_LOCK);
	passed(s);
	end(s, 1000);
	pass.skipped = 5;
	see_again(s);
	passed(s);
	l = close_signal(s);
	assert_int_equal(((const struct look_coverage *)s->evidence)->passes, 3);
	assert_int_equal(((const struct look_coverage *)s->evidence)->skipped, 12 + 5);
	assert_int_equal(((const struct look_coverage *)s->evidence)->left_out, 12 * 2 + 5);
	assert_int_equal(((const struct look_coverage *)s->evidence)->longest_ns, 698 * MS);
	assert_int_equal(((const struct look_coverage *)s->evidence)->session_ns, 1000 * MS);
	assert_int_equal(l->attempted, 4);
	assert_int_equal(s->taken->expected, 4 + 12 * 2 + 5);
	signals_free(s);
}

/* Between two waits half of the time goes to each; to one that is over, half of the time since. */
static void test_halves(void **state)
{
	struct signal *s = begin();

	at(0);
	see(s, 5, 4);
	passed(s);
	at(100);
	see(s, 6, 3);
	passed(s);
	at(200); /* it runs */
	passed(s);
	at(300);
	see(s, 9, 4);
	passed(s);
	end(s, 400);
	passed(s);
	close_signal(s);
	assert_int_equal(s->taken->stacks.count, 2);
	assert_int_equal(weight_ms(s, 0), 50 + 50 + 50);
	assert_int_equal(weight_ms(s, 1), 50 + 50);
	assert_int_equal(shown_ms(-1), 250);
	assert_int_equal(shown_ms(100), 50);
	assert_int_equal(shown_ms(150), 0); /* it ran from the middle of two looks on */
	assert_int_equal(shown_ms(250), 50);
	signals_free(s);
}

/* A thread that one whole pass left out, though it had not run: its wait keeps all of its time. */
static void test_left_out_once(void **state)
{
	struct signal *s = begin();
	const struct ledger *l;

	at(0);
	see(s, 5, 4);
	see_as(s, TID + 1, 7, 3, WAIT_FOR_CPU);
	see_as(s, TID + 2, 7, 2, WAIT_FOR_CPU);
	passed(s);
	at(100);
	see_as(s, TID + 1, 7, 3, WAIT_FOR_CPU);
	see_as(s, TID + 2, 7, 2, WAIT_FOR_CPU);
	passed(s);
	at(200);
	see_again(s);
	passed(s);
	end(s, 300);
	see_again(s);
	passed(s);
	l = close_signal(s);
	assert_int_equal(weight_ms(s, 0), 300);
	assert_int_equal(shown_ms(-1), 300);
	assert_int_equal(s->taken->stacks.items[0]->count, 3);
	assert_int_equal(l->attempted, l->emitted);
	signals_free(s);
}

/* A better walk of the same wait takes over the weight of the first stack, and its looks. */
static void test_better_walk(void **state)
{
	struct signal *s = begin();
	const struct ledger *l;

	at(0);
	see(s, 5, 1);
	passed(s);
	at(100);
	see_again(s);
	passed(s);
	at(200);
	see(s, 5, 6);
	passed(s);
	end(s, 300);
	see_again(s);
	passed(s);
	l = close_signal(s);
	assert_int_equal(weight_ms(s, 0), 0);
	assert_int_equal(s->taken->stacks.items[0]->count, 0);
	assert_int_equal(weight_ms(s, 1), 300);
	assert_int_equal(s->taken->stacks.items[1]->count, 4);
	assert_int_equal(l->emitted, 4);
	signals_free(s);
}

/* Woken, it waits for a CPU: another stack, though it has not run. */
static void test_woken(void **state)
{
	struct signal *s = begin();

	at(0);
	see(s, 5, 4);
	passed(s);
	at(100);
	see_as(s, TID, 5, 4, WAIT_FOR_CPU);
	passed(s);
	end(s, 200);
	passed(s);
	close_signal(s);
	assert_int_equal(s->taken->stacks.count, 2);
	assert_int_equal(s->taken->stacks.items[1]->wait, WAIT_FOR_CPU);
	assert_int_equal(weight_ms(s, 0), 50);
	assert_int_equal(weight_ms(s, 1), 100);
	signals_free(s);
}

/* A pass that does not come to its end ends no wait, and is a loss for each that it left out. */
static void test_cut(void **state)
{
	struct signal *s = begin();
	const struct ledger *l;

	at(0);
	see(s, 5, 4);
	see_as(s, TID + 1, 5, 4, WAIT_FOR_CPU);
	passed(s);
	at(100);
	see_again(s);
	pass.cut = true;
	passed(s);
	at(200);
	see_again(s);
	passed(s);
	end(s, 300);
	/* The last one does not come at all. */
	l = close_signal(s);
	assert_int_equal(l->lost[DROP_LOOK_CUT], 2);
	assert_int_equal(l->emitted, 4);
	assert_int_equal(weight_ms(s, 0), 200);
	signals_free(s);
}

/* Two looks at one thread: both are lost, for the same reason, and their time is on no stack. */
static void check_lost(bool reported, uint16_t frames, enum drop why)
{
	struct signal *s = begin();
	const struct ledger *l;

	at(0);
	if (reported)
		see(s, 5, frames);
	else
		see_again(s);
	passed(s);
	at(100);
	see_again(s);
	passed(s);
	end(s, 200);
	passed(s);
	l = close_signal(s);
	assert_int_equal(l->attempted, 2);
	assert_int_equal(l->lost[why], 2);
	assert_int_equal(s->taken->stacks.count, 0);
	signals_free(s);
}

static void test_no_frame(void **state)
{
	check_lost(true, 0, DROP_STACK_USER);
}

/* Its report is not there: the look has no time either. */
static void test_no_report(void **state)
{
	check_lost(false, 0, DROP_LOOK_CUT);
	assert_int_equal(shown_ms(-1), 0);
}

/* The rule that its process matched is no longer known. */
static void test_no_rule(void **state)
{
	target.only_rule = true;
	rule_id = RULE_ID_UNKNOWN;
	check_lost(true, 4, DROP_STALE);
}

/* Threads of another process than the one asked for are in no ledger. */
static void test_of_others(void **state)
{
	struct signal *s;
	const struct ledger *l;

	target.only_tgid = 4711;
	s = begin();
	at(0);
	see(s, 5, 4);
	passed(s);
	at(100);
	see_again(s);
	passed(s);
	end(s, 200);
	passed(s);
	l = close_signal(s);
	assert_int_equal(l->attempted, 0);
	assert_int_equal(s->taken->stacks.count, 0);
	signals_free(s);
}

/* A pass that began before the session proves nothing about it. */
static void test_earlier_pass(void **state)
{
	struct signal *s;

	looks.pass.number = 8;
	s = begin();
	pass = (struct look_pass){ .number = 8, .began_ns = START - MS };
	see(s, 5, 4);
	passed(s);
	assert_int_equal(s->taken->phase[PHASE_DURING].attempted, 0);
	looks_drop(&looks);
	signals_free(s);
}

/* The longest time that an epoll waits for an answer goes on while its thread is as before. */
static void test_epoll_lasts(void **state)
{
	const struct look_on on = { .kind = LOOK_ON_EPOLL,
				    .family = 2,
				    .peer_port = 8080,
				    .asked = 2,
				    .longest_ns = 300 * MS };
	struct signal *s = begin();
	const struct look_on *told;

	at(10);
	see_on(s, TID, 5, 2, WAIT_BLOCKED + WAIT_IDLE, &on);
	passed(s);
	at(510);
	see_again(s);
	passed(s);
	end(s, 1000);
	see_again(s);
	passed(s);
	told = wait_objects_get(&s->taken->objects, s->taken->stacks.items[0]->on);
	assert_int_equal(told->asked, 2);
	/* To the end of the session, and no further. */
	assert_int_equal(told->longest_ns, (300 + 990) * MS);
	close_signal(s);
	signals_free(s);
}

static void test_no_pin(void **state)
{
	static char nowhere[] = "/nonexistent/looks";
	struct signal *s;

	pins.looks_path = nowhere;
	s = signals_new(SIGNAL_OFFCPU, &host, &target);
	s->kind->begin(s, &host, &target);
	assert_non_null(strstr(s->off_reason, "looks"));
	assert_int_equal(slots[SLOT].looked, 0);
	s->kind->end(s, &host, &target);
	assert_true(s->kind->is_settled(s));
	s->kind->close(s, &host, &target);
	signals_free(s);
}

static void test_kinds(void **state)
{
	struct look_record r = { .syscall = LOOK_NO_SYSCALL };

	/* In no system call: that alone is no page fault. */
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "other");
	r.head.flags = LOOK_FAULT;
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "fault");
	r.head.flags = LOOK_FROZEN | LOOK_IO;
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "frozen");
	r.head.flags = LOOK_STOPPED;
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "stopped");
	r.head.flags = LOOK_TRACED;
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "traced");
	r.head.flags = 0;
	r.sample.flags = SAMPLE_KTHREAD;
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "other");
	r.head.flags = LOOK_IO;
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "io");
	r.head.flags |= LOOK_MEMORY;
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "memory");
	r.head.flags |= LOOK_RUNNABLE;
	assert_int_equal(wait_kind_state(&r), WAIT_FOR_CPU);
	assert_null(wait_kind_name(WAIT_FOR_CPU));
	r = (struct look_record){ .syscall = 1 << 30 };
	assert_string_equal(wait_kind_name(wait_kind_state(&r)), "other");
}

UNIT_TESTS(offcpu)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(all_along),     TEST(left_out),  TEST(halves),
		TEST(left_out_once), TEST(no_report), TEST(no_rule),
		TEST(better_walk),   TEST(woken),     TEST(cut),
		TEST(no_frame),	     TEST(of_others), TEST(earlier_pass),
		TEST(epoll_lasts),   TEST(no_pin),    cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
