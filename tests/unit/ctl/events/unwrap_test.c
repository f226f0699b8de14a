/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/events/unwrap.h"

#define EVENT "{\"v\":1,\"type\":\"stack\",\"ts\":\"2026-11-21T15:59:03Z\",\"comm\":\"a\\\"b\"}"
#define INSIDE                                                                             \
	"{\\\"v\\\":1,\\\"type\\\":\\\"stack\\\",\\\"ts\\\":\\\"2026-11-21T15:59:03Z\\\"," \
	"\\\"comm\\\":\\\"a\\\\\\\"b\\\"}"

static struct unwrap unwrap;

static int setup(void **state)
{
	return unwrap_init(&unwrap);
}

static int teardown(void **state)
{
	unwrap_done(&unwrap);
	return 0;
}

/* That the line has this event in it, from this column on. */
static void holds(const char *line, const char *event, size_t column)
{
	struct unwrapped found;

	if (unwrap_line(&unwrap, line, strlen(line), &found) != UNWRAP_EVENT)
		fail_msg("no event in: %s", line);
	if (found.bytes != strlen(event) || memcmp(found.text, event, found.bytes) != 0)
		fail_msg("%.*s in: %s", (int)found.bytes, found.text, line);
	assert_int_equal(found.column, column);
}

static void test_before_it(void **state)
{
	holds(EVENT, EVENT, 0);
	holds("  " EVENT, EVENT, 2);
	/* syslog, journalctl, kubectl --prefix, a container runtime's own file, compose */
	holds("Nov 21 15:59:03 shop1 trocar-consumer[7]: " EVENT, EVENT, 42);
	holds("<14>1 2026-11-21T15:59:03Z shop1 trocar 7 - [a@1 b=\"c\"] " EVENT, EVENT, 56);
	holds("[pod/trocar-x/consumer] " EVENT, EVENT, 24);
	holds("2026-11-21T15:59:03.098Z stdout F " EVENT, EVENT, 34);
	holds("trocar-1  | " EVENT, EVENT, 12);
	holds("{x} {} " EVENT, EVENT, 7);
}

static void test_around_it(void **state)
{
	holds("{\"__CURSOR\":\"s=1\",\"PRIORITY\":\"6\",\"MESSAGE\":\"" INSIDE "\"}", EVENT, 0);
	holds("{\"log\":\"" INSIDE "\\n\",\"stream\":\"stdout\",\"time\":\"x\"}", EVENT "\n", 0);
	holds("{\"date\":1.5,\"message\":\"Nov 21 shop1: " INSIDE "\"}", EVENT, 0);
	holds("Nov 21 x: {\"msg\":\"" INSIDE "\"}", EVENT, 0);
}

/* Pipelines sort keys and add some of their own. */
static void test_other_orders(void **state)
{
	const char *sorted = "{ \"comm\": \"web\", \"type\": \"stack\", \"v\": 1 }";
	const char *more = "{\"message\":\"" INSIDE "\",\"type\":\"stack\",\"v\":1}";

	holds(sorted, sorted, 0);
	holds(more, more, 0); /* it is one, whatever else it has */
}

static void test_faulty_events(void **state)
{
	/* What is cut or broken is an event with a fault, which its reader names. */
	holds("{\"v\":1,\"type\":\"sta", "{\"v\":1,\"type\":\"sta", 0);
	holds("x: {\"mono_ns\":1,\"type\":\"stack\",", "{\"mono_ns\":1,\"type\":\"stack\",", 3);
}

static void test_no_event(void **state)
{
	static const char *const lines[] = {
		"",
		"x",
		"-- Boot 91e4235c32fa40199e34de15d983d7f6 --",
		"trocar-consumer[7]: 3 rules in force",
		"{",
		"{}",
		"{\"",
		"{\"a\":1}",
		"{\"level\":\"info\",\"msg\":\"started\"}",
		"{\"MESSAGE\":\"started\"}",
		"{\"MESSAGE\":[123,34]}",
		"{\"MESSAGE\":\"{\\\"a\\\":1}\"}",
		"{\"log\":\"{\\\"log\\\":\\\"{\\\\\\\"v\\\\\\\":1}\\\"}\"}",
		"{\"type\":\"x",
		"{\"type\":7,\"a\":1}",
		"[{\"a\":1}]",
		"\xff\xfe{\"\x80",
	};
	struct unwrapped found;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (unwrap_line(&unwrap, lines[i], strlen(lines[i]), &found) != UNWRAP_NOTHING)
			fail_msg("an event: %s", lines[i]);
}

/* journalctl -o json leaves out fields longer than 4096 bytes, unless it is run with -a. */
static void test_left_out(void **state)
{
	const char *line = "{\"__CURSOR\":\"s=1\",\"MESSAGE\":null,\"PRIORITY\":\"6\"}";
	struct unwrapped found;

	assert_int_equal(unwrap_line(&unwrap, line, strlen(line), &found), UNWRAP_LEFT_OUT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(unwrap)
{
	const struct CMUnitTest tests[] = {
		TEST(before_it),     TEST(around_it), TEST(other_orders),
		TEST(faulty_events), TEST(no_event),  TEST(left_out),
	};

	return cmocka_run_group_tests_name("unwrap", tests, NULL, NULL);
}
