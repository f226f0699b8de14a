/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule that a process matched at a tick, by the sample and by the consumer's knowledge. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include "consumer/process/process_rule.h"

#define RULES                                                                                   \
	"{\"version\":1,\"rules\":["                                                            \
	"{\"name\":\"exact\",\"match\":{\"comm\":\"work\"}},"                                   \
	"{\"name\":\"prefix\",\"match\":{\"comm_prefix\":\"work\"}},"                           \
	"{\"name\":\"inside\",\"match\":{\"comm_prefix\":\"work\",\"cgroup_prefix\":\"/in\"}}," \
	"{\"name\":\"place\",\"match\":{\"cgroup_prefix\":\"/unit/place\"}}]}"

enum { EXACT, PREFIX, INSIDE, PLACE };

#define INNER  (1ULL << 40)
#define OUTER  (2ULL << 40)
#define PLACED (3ULL << 40)

static struct fake *fake;

static int setup(void **state)
{
	fake = fake_new();
	if (!fake)
		return 0;
	fake_rules(fake, RULES);
	cgroups_learn(&fake->a.cgroups, INNER, "/inner");
	cgroups_learn(&fake->a.cgroups, OUTER, "/outer");
	cgroups_learn(&fake->a.cgroups, PLACED, "/unit/place/7");
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	fake = NULL;
	return 0;
}

static const struct rule *rule_at(size_t i)
{
	return &fake->a.active.set->rules->rules[i];
}

/* A sample of a further thread of a process that matched rule `i` of the set in force. */
static struct sample matched(uint32_t i)
{
	return (struct sample){ .tgid = 100,
				.tid = 101,
				.flags = SAMPLE_MATCHED,
				.rule = i,
				.generation = fake->a.active.set->generation,
				.comm = "thread" };
}

static void is_rule(struct sample s, const struct process *p, uint64_t cgroup, size_t want)
{
	assert_int_equal(process_rule_at_tick(&fake->a.active, &fake->a.cgroups, &s, p, cgroup),
			 ruleset_id(fake->a.active.set, rule_at(want)));
}

static void is_id(struct sample s, const struct process *p, uint64_t cgroup, uint32_t want)
{
	assert_int_equal(process_rule_at_tick(&fake->a.active, &fake->a.cgroups, &s, p, cgroup),
			 want);
}

/* The kernel side knows names alone: of the rules with that name the cgroup decides. */
static void test_named_by_the_kernel(void **state)
{
	struct sample s;

	if (!fake) {
		skip();
		return;
	}
	is_rule(matched(EXACT), NULL, OUTER, EXACT);
	is_rule(matched(PREFIX), NULL, OUTER, PREFIX);
	is_rule(matched(PREFIX), NULL, INNER, INSIDE);
	is_rule(matched(INSIDE), NULL, OUTER, PREFIX);
	s = matched(NO_SLOT);
	is_id(s, NULL, OUTER, RULE_ID_NONE);
	s = matched(99);
	is_id(s, NULL, OUTER, RULE_ID_NONE);
}

/* The consumer's knowledge holds where the sample has none. */
static void test_known_here(void **state)
{
	struct process p = { .tgid = 100 };
	struct sample s = { .tgid = 100, .tid = 100, .rule = NO_SLOT };

	if (!fake) {
		skip();
		return;
	}
	p.rule = rule_at(PREFIX);
	is_rule(s, &p, OUTER, PREFIX);
	is_rule(matched(PREFIX), &p, INNER, PREFIX);
	is_rule(matched(INSIDE), &p, INNER, PREFIX);
	/* It has another name since. */
	is_rule(matched(EXACT), &p, OUTER, EXACT);
}

/* Without a matching name the cgroup alone may do, also for an unknown process. */
static void test_by_cgroup(void **state)
{
	struct sample s = { .tgid = 100, .tid = 100, .rule = NO_SLOT };

	if (!fake) {
		skip();
		return;
	}
	is_rule(s, NULL, PLACED, PLACE);
	is_id(s, NULL, OUTER, RULE_ID_NONE);
}

/* A rule of an earlier set. */
static void test_other_set(void **state)
{
	struct process p = { .tgid = 100 };
	struct sample s;

	if (!fake) {
		skip();
		return;
	}
	s = matched(EXACT);
	s.generation--;
	is_id(s, NULL, OUTER, RULE_ID_UNKNOWN);
	is_id(s, &p, OUTER, RULE_ID_UNKNOWN);
	/* The first thread's name is the process's. */
	s.tid = s.tgid;
	strcpy(s.comm, "work");
	is_rule(s, NULL, OUTER, EXACT);
	strcpy(s.comm, "nothing");
	is_id(s, NULL, OUTER, RULE_ID_NONE);
	/* It was matched anew, and matches nothing. */
	s.tid = 101;
	p.generation = fake->a.active.set->generation;
	is_id(s, &p, OUTER, RULE_ID_NONE);
	p.rule = rule_at(INSIDE);
	is_rule(s, &p, OUTER, INSIDE);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(process_rule)
{
	const struct CMUnitTest tests[] = {
		EACH(test_named_by_the_kernel),
		EACH(test_known_here),
		EACH(test_by_cgroup),
		EACH(test_other_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
