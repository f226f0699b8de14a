/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

/* A session of an id and a rule, of a second. */
#define OF(type, id, rule, second)                                                          \
	"{\"v\":1,\"type\":\"" type "\",\"ts\":\"2026-11-21T15:59:" second                  \
	".1Z\",\"host\":\"shop1\",\"session\":\"" id "\",\"rule\":\"" rule "\",\"cgroup\":" \
	"\"/c\""
#define STACK(id, rule, second, fn)                                                          \
	OF("stack", id, rule, second)                                                        \
	",\"signal\":\"oncpu\",\"phase\":\"during\",\"pid\":7,\"comm\":\"web\",\"count\":1," \
	"\"weight_ns\":100,\"frames\":[" EVENTS_USER(fn) "]}\n"
#define END(id, rule, second)	      OF("session.end", id, rule, second) ",\"headline\":\"h\"}\n"
#define SESSION(id, rule, second, fn) STACK(id, rule, second, fn) END(id, rule, second)

static void prints(const char *out, const char *err)
{
	assert_string_equal(events_out, out);
	assert_string_equal(events_err, err);
}

/* The newest by its time, not by where it stands; one that has not ended is none. */
static void test_newest(void **state)
{
	events_write(SESSION("aa11", "api", "20", "second") SESSION("aa22", "api", "30", "third")
			     SESSION("bb11", "api", "10", "first")
				     STACK("cc11", "api", "50", "runs"));
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	prints("web;third 1\n", "trocar: the newest session alone; 3 more: --all\n");
	events_write(STACK("cc11", "api", "50", "runs") STACK("dd11", "api", "51", "too"));
	events_command("folded", events_file, NULL);
	prints("web;too 1\n", "trocar: the newest session alone; 1 more: --all\n");
}

static void test_beginnings(void **state)
{
	events_write(SESSION("aa11", "api", "20", "f") SESSION("aa22", "api", "30", "g")
			     SESSION("bb11", "api", "10", "h") SESSION("aa", "api", "40", "i"));
	assert_int_equal(events_command("folded", events_file, "--session", "a", NULL),
			 COMMAND_FAILED);
	prints("", "trocar: --session a is the beginning of several: aa11 aa22 aa\n");
	assert_int_equal(events_command("folded", events_file, "--session", "aa1", NULL), 0);
	prints("web;f 1\n", "");
	/* One that is all of an id is that one. */
	assert_int_equal(events_command("folded", events_file, "--session", "aa", NULL), 0);
	prints("web;i 1\n", "");
	assert_int_equal(events_command("folded", events_file, "--session", "aa", "--all", NULL),
			 0);
	prints("web;i 1\n", "");
}

/* Unselected sessions are in no list and no sum. */
static void test_report(void **state)
{
	events_write(SESSION("aa11", "api", "20", "f") SESSION("aa22", "web", "30", "g")
			     SESSION("bb11", "api", "10", "h"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_non_null(strstr(events_out, "session aa22, rule web"));
	assert_null(strstr(events_out, "session aa11"));
	assert_non_null(strstr(events_out, "\n2 more sessions: --all\n"));
	assert_string_equal(events_err, "");
	events_command("report", "--full", events_file, "--rule", "web", NULL);
	assert_null(strstr(events_out, "more session"));
	events_command("explain", events_file, NULL);
	assert_non_null(strstr(events_out, "\n2 more sessions: --all\n"));
	events_command("report", "--full", events_file, "--host", "shop2", NULL);
	prints("", "trocar: no session is selected; the newest of the 3 that were read:\n"
		   "  SESSION  TIME (UTC)           HOST   RULE  CGROUP\n"
		   "  aa22     2026-11-21T15:59:30  shop1  web   /c\n"
		   "  aa11     2026-11-21T15:59:20  shop1  api   /c\n"
		   "  bb11     2026-11-21T15:59:10  shop1  api   /c\n");
	events_write(SESSION("aa11", "api", "20", "f"));
	events_command("report", "--full", events_file, "--host", "shop2", NULL);
	prints("", "trocar: no session is selected; one was read:\n"
		   "  SESSION  TIME (UTC)           HOST   RULE  CGROUP\n"
		   "  aa11     2026-11-21T15:59:20  shop1  api   /c\n");
}

/* No headline stands above sessions of several rules. */
static void test_all(void **state)
{
	events_write(SESSION("aa11", "api", "20", "f") SESSION("aa22", "web", "30", "g"));
	assert_int_equal(events_command("flamegraph", events_file, "--all", NULL), COMMAND_FINE);
	assert_non_null(strstr(events_out, ">2 sessions of several rules<"));
	assert_non_null(strstr(events_out, "2026-11-21T15:59:20 to 2026-11-21T15:59:30 UTC"));
	assert_null(strstr(events_out, ">h<"));
	events_write(SESSION("aa11", "api", "20", "f") SESSION("aa22", "api", "30", "g"));
	events_command("flamegraph", events_file, "--all", NULL);
	assert_non_null(strstr(events_out, ">2 sessions of the rule api<"));
	events_command("flamegraph", events_file, NULL);
	assert_non_null(strstr(events_out, ">h<"));
}

static void test_foreign_ids(void **state)
{
	events_write(SESSION("a\\u001b1", "api", "20", "f") SESSION("a\\u001b2", "api", "30", "g"));
	events_command("folded", events_file, "--session", "a", NULL);
	prints("", "trocar: --session a is the beginning of several: a\\x1b1 a\\x1b2\n");
}

UNIT_TESTS(choose)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = { TEST(newest), TEST(beginnings), TEST(report), TEST(all),
					    TEST(foreign_ids) };

	return cmocka_run_group_tests_name("choose", tests, NULL, NULL);
}
