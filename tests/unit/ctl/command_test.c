/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole command lines against an agent with the test's answers. CLIENT_TIMEOUT_MS is 3000. */
#include "tests/unit/ctl/command_testing.h"

static void test_usage(void **state)
{
	static const char *const wrong[] = {
		"",
		"nonsense",
		"rules",
		"rules nonsense",
		"status extra",
		"rules set",
		"rules set a b",
		"--nonsense",
		"-j",
		"status --json=1",
		"status --rule x",
		"status --socket",
		"capture",
		"capture --rule a --pid 1",
		"capture --pid 0",
		"capture --pid x",
		"capture --rule a --during-ms 99",
		"help nonsense",
		"a b c d e f",
	};
	static const char *const right[] = {
		"help",		 "--help",  "help status", "help rules",   "help rules set",
		"status --help", "version", "--version",   "rules get -h",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		if (run(wrong[i]) != COMMAND_USAGE)
			fail_msg("%s", wrong[i]);
		assert_string_not_equal(err, "");
		assert_string_equal(out, "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		if (run(right[i]) != COMMAND_FINE)
			fail_msg("%s: %s", right[i], err);
		assert_string_equal(err, "");
		assert_string_not_equal(out, "");
	}
}

/* A word that was mistyped, and the one that was meant. */
static void test_meant(void **state)
{
	static const struct {
		const char *line, *meant;
	} rows[] = {
		{ "stauts",
		  "trocar: stauts: there is no such command; did you mean trocar status?\n" },
		{ "rules chek x",
		  "trocar: rules: there is no such command; did you mean trocar rules check?\n" },
		{ "help explian", "trocar: explian: there is no such command; did you mean trocar "
				  "explain?\n" },
		{ "report --sesion 1", "trocar: --sesion: no such option here; did you mean "
				       "--session?\n" },
		{ "status --sesion 1", "trocar: --sesion: no such option here; did you mean "
				       "--session?\n" },
		{ "nonsense", "trocar: nonsense: there is no such command: see trocar help\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(run(rows[i].line), COMMAND_USAGE);
		assert_string_equal(err, rows[i].meant);
	}
}

static void test_examples(void **state)
{
	assert_int_equal(run("help rules check"), COMMAND_FINE);
	assert_has(out, "\nExamples:\n  trocar rules check rules.json\n      is the file right");
	assert_null(strstr(out, "rules set rules.json"));
}

static void test_unreachable(void **state)
{
	assert_int_equal(run("status --socket /nonexistent/x"), COMMAND_UNREACHABLE);
	assert_has(err, "is the service running");
	assert_has(err, "is the service running?");
	assert_ptr_equal(strchr(err, '\n'), err + strlen(err) - 1);
	exchange.hang = true;
	assert_int_equal(run_with("status", "{\"half"), COMMAND_UNREACHABLE);
	assert_has(err, "did not answer");
	exchange.hang = false;
	assert_int_equal(run_with("status", ""), COMMAND_UNREACHABLE);
}

static void test_no_agent(void **state)
{
	static const char *const answers[] = {
		"\n",
		"HTTP/1.1 400 Bad Request\r\n",
		"[]\n",
		"{}\n",
		"{\"result\":1,\"error\":{\"code\":1,\"message\":\"\"}}\n",
		"{\"error\":1}\n",
		"{\"error\":{\"code\":\"1\",\"message\":\"\"}}\n",
		"{\"result\":\"\xff\"}\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		if (run_with("status", answers[i]) != COMMAND_FAILED)
			fail_msg("%s", answers[i]);
		assert_has(err, "is not the agent");
	}
}

static void test_answer_too_long(void **state)
{
	size_t bytes = (8 << 20) + 2;
	_cleanup_free_ char *answer = malloc(bytes);

	memset(answer, ' ', bytes);
	exchange.bytes = bytes;
	assert_int_equal(run_with("status", answer), COMMAND_FAILED);
	assert_has(err, "is not the agent");
}

/* Shapes other than those of docs/control.md must do no harm. */
static void test_odd_results(void **state)
{
	static const char *const commands[] = { "status", "watches", "sessions", "rules get",
						"capture --pid 1" };
	static const char *const answers[] = {
		OK("null"),
		OK("1"),
		OK("\"x\""),
		OK("[]"),
		OK("{}"),
		OK("[1,null,[[]],{\"a\":{}}]"),
		OK("{\"owners\":[],\"rings\":{}}"),
		OK("{\"owners\":[1,null,{\"at_share\":[1],\"watches\":[]},{\"at_share\":{}}]}"),
		OK("{\"owners\":7,\"rings\":1,\"output\":{\"last_error\":{}},\"a\":{\"b\":[1,{\"c\":[]}]}}"),
	};

	for (size_t c = 0; c < ARRAY_SIZE(commands); c++)
		for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
			assert_int_equal(run_with(commands[c], answers[i]), COMMAND_FINE);
}

#define STATUS                                                                                      \
	"{\"version\":\"0.1.0\",\"pid\":7,\"uptime_ms\":7500000,\"self\":{\"cap_eff\":"             \
	"\"0000000000000000\",\"uid\":998,\"dumpable\":false},\"generation\":3,\"rules\":2,"        \
	"\"watches\":1,\"processes\":4,\"sessions_running\":1,\"sessions_total\":9,\"rings\":"      \
	"[{\"name\":\"samples\",\"size_bytes\":4194304,\"used_bytes\":512}],\"owners\":[{"          \
	"\"owner\":\"uid 1000\",\"watches\":12,\"tables\":3,\"rows_bytes\":2048,\"captured_ms\":0," \
	"\"at_share\":[\"watches\"]}],\"output\":{\"kind\":"                                        \
	"\"file\",\"bytes\":2048,\"dropped_lines\":5,\"last_error\":28,\"queue_bytes\":1048576}}"

static void test_status(void **state)
{
	assert_int_equal(run_with("status", OK(STATUS)), COMMAND_FINE);
	assert_string_equal(exchange.request,
			    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n");
	assert_string_equal(out, "not well: trocar 0.1.0, up 2 h 5 min, pid 7\n"
				 "! 5 lines dropped: the reader of the output is too slow\n"
				 "! the output cannot be written: error 28\n"
				 "watched: 4 processes in 1 cgroup, by 2 rules\n"
				 "sessions: 9 since the start, 1 running\n"
				 "lost: nothing; 0 lines written, memory 0 B\n");
	assert_int_equal(run_with("status --all", OK(STATUS)), COMMAND_FINE);
	assert_has(out, "  cap eff   0000000000000000\n");
	assert_has(out, "  dumpable  no\n");
	assert_has(out, "  NAME     SIZE     USED\n  samples  4.0 MiB  512 B\n");
	assert_has(out, "  queue          1.0 MiB\n");
	assert_has(out, "  12!      3       2.0 KiB  0 s       uid 1000\n");
	assert_int_equal(run_with("--json status", OK(STATUS)), COMMAND_FINE);
	assert_string_equal(out, STATUS "\n");
}

static void test_lists(void **state)
{
	assert_int_equal(
		run_with("watches",
			 OK("[{\"slot\":0,\"cgroup\":\"/a\x1b\x1b\",\"rules\":[\"r\",\"s\"],"
			    "\"age_ms\":1500,\"pressure\":{\"cpu\":{\"some_total_us\":250000}}}]")),
		COMMAND_FAILED); /* a raw control character is no JSON */
	assert_null(strchr(out, '\x1b'));
	assert_null(strchr(err, '\x1b'));
	assert_int_equal(
		run_with("watches",
			 OK("[{\"slot\":0,\"cgroup\":\"/a\\u001b[2J\",\"rules\":[\"r\",\"s\"],"
			    "\"age_ms\":1500,\"pressure\":{\"cpu\":{\"some_total_us\":250000}}}]")),
		COMMAND_FINE);
	assert_has(out, "CGROUP     RULES  STATE");
	assert_has(out, "1.5 s");
	assert_has(out, "250 ms");
	assert_has(out, "/a\\x1b[2J");
	assert_has(out, "r, s");
	assert_null(strchr(out, '\x1b'));
	assert_int_equal(run_with("watches", OK("[]")), COMMAND_FINE);
	assert_has(out, "no watches");
	assert_int_equal(
		run_with("sessions",
			 OK("[{\"session\":\"00ff\",\"reason\":{\"pressure\":{\"resource\":"
			    "\"cpu\",\"kind\":\"some\",\"stall_ms\":120}}}]")),
		COMMAND_FINE);
	assert_has(out, "pressure cpu some stall 120 ms");
}

static void test_rules(void **state)
{
	char line[200];

	assert_int_equal(
		run_with("rules get", OK("{\"generation\":4,\"source\":\"socket\",\"rules\":{"
					 "\"version\":1,\"rules\":[]}}")),
		COMMAND_FINE);
	assert_string_equal(err, "generation 4, from socket\n");
	assert_has(out, "\"version\": 1");
	write_file("{ \"version\": 1 }\n", 17);
	snprintf(line, sizeof(line), "rules set %s", file);
	assert_int_equal(
		run_with(line, OK("{\"generation\":5,\"count\":2,\"warnings\":[{\"pointer\":"
				  "\"/rules/1\",\"message\":\"shadowed\"}],"
				  "\"unchanged_watches\":3}")),
		COMMAND_FINE);
	assert_has(exchange.request, "\"method\":\"rules.set\",\"params\":{\"text\":"
				     "\"{ \\\"version\\\": 1 }\\n\"}}\n");
	assert_string_equal(out, "2 rules in force, generation 5; 3 watches go on unchanged\n");
	assert_has(err, "rules.json: warning: /rules/1: shadowed\n");
}

static void test_faults(void **state)
{
	static const char answer[] = NO(
		"{\"code\":-32002,\"message\":\"2 faults\",\"data\":{\"faults\":[{\"pointer\":"
		"\"/rules/3/match/comm\",\"message\":\"1 to 15 bytes\",\"line\":12},{\"pointer\":"
		"\"\",\"message\":\"no version\",\"line\":0}]}}");
	char line[200], expected[400];

	write_file("{}", 2);
	snprintf(line, sizeof(line), "rules set %s", file);
	assert_int_equal(run_with(line, answer), COMMAND_FAILED);
	snprintf(expected, sizeof(expected),
		 "%s:12: /rules/3/match/comm: 1 to 15 bytes\n%s: no version\ntrocar: 2 faults\n",
		 file, file);
	assert_string_equal(err, expected);
	assert_string_equal(out, "");
	snprintf(line, sizeof(line), "rules set --json %s", file);
	assert_int_equal(run_with(line, answer), COMMAND_FAILED);
	assert_has(out, "{\"code\":-32002,");
}

static void test_bad_files(void **state)
{
	size_t bytes = (1 << 20) + 1;
	_cleanup_free_ char *text = malloc(bytes);
	char line[200];

	memset(text, '"', bytes);
	snprintf(line, sizeof(line), "rules set %s", file);
	assert_int_equal(run(line), COMMAND_FAILED);
	assert_has(err, "No such file");
	write_file(text, bytes);
	assert_int_equal(run(line), COMMAND_FAILED);
	assert_has(err, "longer than 1 MiB");
	/* With all of its quotes escaped a text still fits a request. */
	write_file(text, bytes - 1);
	assert_int_equal(run_with(line, OK("{\"generation\":5,\"count\":2}")), COMMAND_FINE);
	assert_true(strlen(exchange.request) > 2 * (bytes - 1));
	write_file("{\"a\":\"\xff\"}", 9);
	assert_int_equal(run(line), COMMAND_FAILED);
	assert_has(err, "byte 6 is no UTF-8");
}

static void test_capture(void **state)
{
	assert_int_equal(run_with("capture --rule api --during-ms=2000",
				  OK("{\"session\":\"0123456789abcdef\",\"cgroup\":\"/a\","
				     "\"ends_in_ms\":2000}")),
			 COMMAND_FINE);
	assert_has(exchange.request, "\"params\":{\"rule\":\"api\",\"during_ms\":2000}}\n");
	assert_string_equal(out, "session 0123456789abcdef started: cgroup /a, ends in 2.0 s\n");
	assert_int_equal(run_with("capture --pid 12",
				  NO("{\"code\":-32003,\"message\":\"cooldown\",\"data\":{"
				     "\"reason\":\"cooldown\",\"retry_ms\":5000}}")),
			 COMMAND_HELD);
	assert_string_equal(err, "trocar: cooldown; try again in 5.0 s\n");
}

static void test_capture_reason(void **state)
{
	assert_int_equal(run_with("capture --rule api --reason p99>500",
				  OK("{\"session\":\"0123456789abcdef\",\"cgroup\":\"/a\","
				     "\"ends_in_ms\":2000,\"held\":2}")),
			 COMMAND_FINE);
	assert_has(exchange.request, "\"params\":{\"rule\":\"api\",\"reason\":\"p99>500\"}}\n");
	assert_has(out, "ends in 2.0 s\n2 other cgroups of the rule: held back\n");
	assert_int_equal(run("capture --rule api --reason a\nb"), COMMAND_USAGE);
	assert_string_equal(err, "trocar: capture: --reason: want 1 to 200 bytes of UTF-8 without "
				 "control characters\n");
	assert_int_equal(run("capture --rule api --reason a\xff"), COMMAND_USAGE);
	assert_int_equal(run("capture --rule api --reason="), COMMAND_USAGE);
	/* Not found is no hold. */
	assert_int_equal(run_with("capture --rule x --reason y",
				  NO("{\"code\":-32004,\"message\":\"no rule\"}")),
			 COMMAND_FAILED);
}

/* The verb is the loader's; what becomes of it otherwise is loader_check_test's. */
static void test_check(void **state)
{
	static const char script[] = "#!/bin/sh\necho \"$* btf\"\nexit 4\n";

	write_file(script, strlen(script));
	assert_int_equal(chmod(file, 0700), 0);
	setenv("TROCAR_LOADER", file, 1);
	assert_int_equal(run("check --json"), COMMAND_FAILED);
	assert_string_equal(out, "check --json btf\n");
	assert_int_equal(run("check"), COMMAND_FAILED);
	assert_string_equal(out, "check btf\n");
	assert_string_equal(err, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(command)
{
	const struct CMUnitTest tests[] = {
		TEST(meant),	TEST(examples),	       TEST(usage),	     TEST(unreachable),
		TEST(no_agent), TEST(answer_too_long), TEST(odd_results),    TEST(status),
		TEST(lists),	TEST(rules),	       TEST(faults),	     TEST(bad_files),
		TEST(capture),	TEST(check),	       TEST(capture_reason),
	};

	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
