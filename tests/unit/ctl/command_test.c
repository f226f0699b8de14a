/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole command lines against an agent that says what the test wants. CLIENT_TIMEOUT_MS is 3000. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/command.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define OK(result) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" result "}\n"
#define NO(error)  "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":" error "}\n"

static char dir[64], path[96], file[96];
static int listener;
static char *out, *err;

/* One connection: what was asked, and the answer to give. */
static struct exchange {
	pthread_t thread;
	const char *answer;
	size_t bytes;
	bool hang; /* say nothing more until the client goes */
	char *request;
} exchange;

static int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(dir, sizeof(dir), "/tmp/trocar-ctl-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	snprintf(file, sizeof(file), "%s/rules.json", dir);
	setenv("TROCAR_SOCKET", path, 1);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	exchange = (struct exchange){ 0 };
	return listen(listener, 4);
}

static int teardown(void **state)
{
	close(listener);
	unlink(path);
	unlink(file);
	free(out);
	free(err);
	out = err = NULL;
	free(exchange.request);
	return rmdir(dir);
}

static void *serve(void *context)
{
	struct exchange *e = context;
	int fd = accept(listener, NULL, NULL);
	size_t bytes = 0, space = 2 << 20;

	e->request = calloc(1, space);
	while (!memchr(e->request, '\n', bytes)) {
		ssize_t n = read(fd, e->request + bytes, space - 1 - bytes);

		if (n <= 0)
			break;
		bytes += (size_t)n;
	}
	(void)send(fd, e->answer, e->bytes, MSG_NOSIGNAL);
	while (e->hang && read(fd, e->request + bytes, space - 1 - bytes) > 0)
		continue;
	close(fd);
	return NULL;
}

/* Runs a command line of words between spaces; its words go to `out` and `err`. */
static int run(const char *line)
{
	_cleanup_free_ char *copy = strdup(line);
	char *argv[16] = { "trocar" }, *save = NULL;
	size_t bytes;
	int argc = 1, status;
	FILE *o, *e;

	free(out);
	free(err);
	o = open_memstream(&out, &bytes);
	e = open_memstream(&err, &bytes);
	for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	status = command_main(argc, argv, o, e);
	fclose(o);
	fclose(e);
	return status;
}

static int run_with(const char *line, const char *answer)
{
	int status;

	free(exchange.request);
	exchange.request = NULL;
	exchange.answer = answer;
	exchange.bytes = exchange.bytes ? exchange.bytes : strlen(answer);
	assert_int_equal(pthread_create(&exchange.thread, NULL, serve, &exchange), 0);
	status = run(line);
	pthread_join(exchange.thread, NULL);
	exchange.bytes = 0;
	return status;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void write_file(const char *text, size_t bytes)
{
	FILE *f = fopen(file, "we");

	assert_int_equal(fwrite(text, 1, bytes, f), bytes);
	fclose(f);
}

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

static void test_unreachable(void **state)
{
	assert_int_equal(run("status --socket /nonexistent/x"), COMMAND_UNREACHABLE);
	assert_has(err, "is the service running");
	assert_has(err, "group trocar");
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

/* Shapes other than docs/control.md says must not harm. */
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
	assert_has(out, "trocar 0.1.0 is running: pid 7, up 2 h 5 min\n");
	assert_has(out, "generation 3: 2 rules, 1 watches, 4 processes, 1 sessions running, 9 in");
	assert_has(out, "! 5 lines dropped");
	assert_has(out, "! the output cannot be written: error 28");
	assert_has(out, "  cap eff   0000000000000000\n");
	assert_has(out, "  dumpable  no\n");
	assert_has(out, "  NAME     SIZE     USED\n  samples  4.0 MiB  512 B\n");
	assert_has(out, "  queue          1.0 MiB\n");
	assert_has(out, "  12!      3       2.0 KiB  0 s       uid 1000\n");
	assert_int_equal(run_with("--json status", OK(STATUS)), COMMAND_FINE);
	assert_string_equal(out, STATUS "\n");
}

/* A cgroup's name is its owner's choice: it reaches no terminal as it is. */
static void test_unseen(void **state)
{
	assert_int_equal(
		run_with("status",
			 OK("{\"cgroups\":{\"unreadable\":{\"count\":3,\"error\":\"EACCES\","
			    "\"example\":\"/u\\u001b[2J\"},\"unknown\":{\"count\":0},"
			    "\"cut\":true,\"error\":\"EIO\"}}")),
		COMMAND_FINE);
	assert_has(out,
		   "! 3 cgroups cannot be looked into: error EACCES, for example /u\\x1b[2J\n");
	assert_has(out, "! the cgroup hierarchy is larger than the agent lists\n");
	assert_has(out, "! the cgroup hierarchy cannot be read: error EIO\n");
	assert_int_equal(
		run_with("status", OK("{\"cgroups\":{\"unreadable\":{\"count\":0},\"unknown\":{"
				      "\"count\":0},\"cut\":false,\"error\":null}}")),
		COMMAND_FINE);
	assert_null(strstr(out, "! the cgroup"));
	assert_null(strstr(out, "cannot be looked into"));
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
	assert_has(out, "SLOT  STATE");
	assert_has(out, "1.5 s");
	assert_has(out, "250 ms");
	assert_has(out, "r, s   /a\\x1b[2J\n");
	assert_null(strchr(out, '\x1b'));
	assert_int_equal(run_with("watches", OK("[]")), COMMAND_FINE);
	assert_has(out, "no watches");
	assert_int_equal(
		run_with("sessions",
			 OK("[{\"session\":\"00ff\",\"reason\":{\"pressure\":{\"resource\":"
			    "\"cpu\",\"kind\":\"some\",\"stall_ms\":120}}}]")),
		COMMAND_FINE);
	assert_has(out, "pressure cpu some stall 120 ms\n");
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
	assert_has(err, "rules.json: /rules/1: shadowed\n");
	snprintf(line, sizeof(line), "rules check %s", file);
	assert_int_equal(
		run_with(line, OK("{\"ok\":true,\"count\":1,\"warnings\":[],\"matches\":[{"
				  "\"rule\":\"api\",\"pid\":9,\"comm\":\"node\",\"cgroup\":"
				  "\"/x\"}],\"matches_omitted\":7,\"cgroups_unreadable\":2}")),
		COMMAND_FINE);
	assert_has(out, "1 rules, no fault; nothing applied\n");
	assert_has(out,
		   "api   9    node  /x\n7 more not shown\n2 cgroups of these rules do not let ");
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
	write_file(text, bytes - 1);
	assert_int_equal(run(line), COMMAND_FAILED);
	assert_has(err, "quotes escaped");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(usage),	   TEST(unreachable),	 TEST(no_agent),  TEST(answer_too_long),
		TEST(odd_results), TEST(status),	 TEST(lists),	  TEST(rules),
		TEST(unseen),	   TEST(faults),	 TEST(bad_files), TEST(capture),
		TEST(check),	   TEST(capture_reason),
	};

	return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
