/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <string.h>

#include "ctl/events/seen.h"

static struct pool_budget budget;
static struct seen seen;

static int setup(void **state)
{
	budget = (struct pool_budget){ .max_bytes = 8u << 20 };
	seen_init(&seen, &budget);
	return 0;
}

static int teardown(void **state)
{
	seen_done(&seen);
	return 0;
}

static struct json_text text_of(const char *text)
{
	return (struct json_text){ .data = text, .bytes = strlen(text) };
}

static struct event event_of(const char *type, const char *session, uint64_t mono_ns)
{
	return (struct event){ .type_text = text_of(type),
			       .session = text_of(session),
			       .boot_id = text_of("b"),
			       .mono_ns = mono_ns };
}

static bool again(const struct event *event, const char *line, uint32_t group)
{
	bool was;

	assert_int_equal(seen_note(&seen, event, line, strlen(line), group, &was), 0);
	return was;
}

static void test_by_time(void **state)
{
	struct event event = event_of("stack", "s", 5), other = event_of("stack", "s", 6);

	assert_false(again(&event, "a", 0));
	assert_true(again(&event, "a", 0));
	assert_true(again(&event, "a, with a key of the pipeline", 0));
	assert_false(again(&other, "a", 0));
	other = event_of("facts", "s", 5);
	assert_false(again(&other, "a", 0));
	other = event_of("stack", "t", 5);
	assert_false(again(&other, "a", 0));
	other = event;
	other.boot_id = text_of("another host");
	assert_false(again(&other, "a", 0));
	other = event;
	other.part = 2;
	assert_false(again(&other, "a", 0));
	/* Two files that are compared may be one. */
	assert_false(again(&event, "a", 1));
	assert_true(again(&event, "a", 1));
}

static void test_without_time(void **state)
{
	struct event event = event_of("stack", "s", 0);

	assert_false(again(&event, "a", 0));
	assert_true(again(&event, "a", 0));
	assert_false(again(&event, "b", 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(seen)
{
	const struct CMUnitTest tests[] = { TEST(by_time), TEST(without_time) };

	return cmocka_run_group_tests_name("seen", tests, NULL, NULL);
}
