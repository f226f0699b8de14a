/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_testing.h: one watch of one rule, samples put into its slot, and sessions begun and ended
 * on it. Each test begins with setup, which leaves `fake` NULL where no maps can be made.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_SESSION_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_SESSION_TESTING_H

#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <stdio.h>

#include "consumer/sampling/drain.h"
#include "consumer/watch/binding.h"
#include "shared/tools/clock.h"

static struct fake *fake;
static struct watch *watch;
static const struct rule *rule;

static inline void apply_rules(const char *more, const char *scope)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"version\":1,%s\"rules\":[{\"name\":\"api\",\"match\":{\"comm\":\"node\"},"
		 "\"capture\":{\"during_ms\":1000,\"cooldown_ms\":60000,\"scope\":\"%s\"}}]}",
		 more, scope);
	fake_rules(fake, text);
	rule = &fake->a.active.set->rules->rules[0];
}

static inline void use_rules(const char *more, const char *scope)
{
	cgroups_learn(&fake->a.cgroups, 1ULL << 40, "/unit/session");
	apply_rules(more, scope);
	assert_int_equal(watch_get(&fake->a.watches, 1ULL << 40, 0, &watch), 0);
	assert_int_equal(binding_add_cgroup(watch, rule), 0);
	/* As if it had been recorded for a while. */
	watch->recorded_ns -= 60 * NSEC_PER_SEC;
	watch->counters.points[watch->counters.newest].time_ns -= 60 * NSEC_PER_SEC;
}

static inline int setup(void **state)
{
	fake = fake_new();
	if (fake)
		use_rules("", "cgroup");
	return 0;
}

static inline int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	return 0;
}

/*
 * Puts that sample, with its slot and a stack, on each CPU; time_ns 0: it is of now.
 */
static inline void put_sample(struct sample head)
{
	struct {
		struct sample head;
		uint64_t kernel[2];
	} s = { .head = head, .kernel = { 0xffffffff81000000ULL, 0xffffffff81000100ULL } };

	s.head.time_ns = head.time_ns ? head.time_ns : clock_mono_ns();
	s.head.start_ns = 5;
	s.head.slot = watch->slot;
	s.head.flags |= SAMPLE_KTHREAD;
	s.head.kernel_frames = 2;
	for (uint32_t cpu = 0; cpu < fake->a.pins.abi.cpus_possible; cpu++) {
		s.head.cpu = cpu;
		fake_put(&fake->samples, &s, sizeof(s));
	}
}

/* One sample of that number and time, on each CPU. */
static inline void put_at(uint64_t time_ns, uint32_t seq, uint32_t flags, uint32_t tgid,
			  uint32_t epoch)
{
	put_sample((struct sample){ .time_ns = time_ns,
				    .epoch = epoch,
				    .seq = seq,
				    .tgid = tgid,
				    .tid = tgid,
				    .flags = flags,
				    .rule = NO_SLOT,
				    .comm = "node" });
}

static inline void put(uint32_t seq, uint32_t flags, uint32_t tgid, uint32_t epoch)
{
	put_at(clock_mono_ns(), seq, flags, tgid, epoch);
}

/* One of the recorder, so long ago. */
static inline void put_ago(uint32_t seq, uint64_t ago_ns)
{
	put_at(clock_mono_ns() - ago_ns, seq, 0, 100, watch->epoch);
}

static inline int fire(enum trigger_kind kind, struct session **ret_session,
		       struct trigger_held *ret_held)
{
	const struct trigger trigger = {
		.watch = watch,
		.rule = rule,
		.reason = { .kind = kind, .pid = 100, .comm = "node" },
	};

	/* What is in the ring by then is of before. */
	fake_drain_samples(fake);
	return trigger_fire(&fake->a.triggers, &trigger, ret_session, ret_held);
}

static inline struct session *start(enum trigger_kind kind)
{
	struct trigger_held held;
	struct session *s;

	assert_int_equal(fire(kind, &s, &held), 0);
	return s;
}

/* Why a session may not start now, or NULL when it may (and did). */
static inline const char *held_by(enum trigger_kind kind)
{
	struct trigger_held held = {};
	struct session *s;

	if (fire(kind, &s, &held) == 0)
		return NULL;
	assert_true(held.retry_ms > 0);
	return held.reason;
}

/* What follows a drain. */
static inline void step(uint64_t now_ns)
{
	if (sessions_end_due(&fake->a.sessions, now_ns))
		fake_drain_samples(fake);
	triggers_step(&fake->a.triggers, now_ns);
}

/* Ends it and lets everything that belongs to it arrive. */
static inline void end(struct session *s)
{
	session_end(&fake->a.sessions, s);
	fake_drain_samples(fake);
	step(clock_mono_ns() + NSEC_PER_SEC);
	assert_null(watch->session);
}

static inline json_object *ledger_of(json_object *line)
{
	return json_object_object_get(json_object_object_get(line, "ledger"), "oncpu");
}

static inline int64_t number(json_object *object, const char *key)
{
	return json_object_get_int64(json_object_object_get(object, key));
}

static inline struct trigger cpu_trigger(void)
{
	struct trigger t = { .watch = watch, .rule = rule };

	t.reason.kind = TRIGGER_PRESSURE;
	t.reason.by = "scan";
	t.reason.when.resource = RESOURCE_CPU;
	t.reason.stall_ms = t.reason.when.stall_ms = 200;
	t.reason.measured_ms = t.reason.when.window_ms = 2000;
	return t;
}

/* What the slot's counters were so long ago, on all CPUs together. */
static inline void had_counted(uint64_t ago_ns, struct slot_counters each)
{
	uint32_t cpus = fake->a.pins.abi.cpus_possible;

	each.attempted *= cpus;
	each.emitted *= cpus;
	for (size_t i = 0; i < SLOT_LOST_REASONS; i++)
		each.lost[i] *= cpus;
	counter_history_add(&watch->counters, clock_mono_ns() - ago_ns, &each);
}

/* A test of such an agent. */
#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
