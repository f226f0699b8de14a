/* SPDX-License-Identifier: BSD-2-Clause */
/* capture --wait against an agent that answers each request as the test wants. */
#include "tests/unit/runner/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/command.h"
#include "shared/tools/macro.h"

#define OK(result) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" result "}\n"
#define NO(error)  "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":" error "}\n"

#define SUBSCRIBED OK("{\"subscription\":7,\"buffer_bytes\":100}")
#define STARTED(sessions) \
	OK("{\"session\":\"aa\",\"cgroup\":\"/a\",\"ends_in_ms\":100,\"sessions\":" sessions "}")
#define LINES(lines, omitted, more) \
	OK("{\"lines\":[" lines "],\"omitted\":" omitted ",\"more\":" more "}")
#define END(session, verdict)                                                          \
	"{\"type\":\"session.end\",\"session\":\"" session "\",\"verdict\":\"" verdict \
	"\",\"headline\":\"" session " stalled\"}"

static char dir[64], path[96], asked[8192];
static int listener;
static char *out, *err;
static const char *const *answers;

static int setup(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(dir, sizeof(dir), "/tmp/trocar-ctl-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	setenv("TROCAR_SOCKET", path, 1);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return listen(listener, 4);
}

static int teardown(void **state)
{
	close(listener);
	unlink(path);
	free(out);
	free(err);
	out = err = NULL;
	return rmdir(dir);
}

/* Answers one request after the other, then closes. */
static void *serve(void *context)
{
	int fd = accept(listener, NULL, NULL);
	size_t bytes = 0;

	asked[0] = '\0';
	for (const char *const *answer = answers; *answer; answer++) {
		ssize_t n;

		do {
			n = read(fd, asked + bytes, sizeof(asked) - 1 - bytes);
			bytes += n > 0 ? (size_t)n : 0;
			asked[bytes] = '\0';
		} while (n > 0 && asked[bytes - 1] != '\n');
		(void)send(fd, *answer, strlen(*answer), MSG_NOSIGNAL);
	}
	close(fd);
	return NULL;
}

static int run(const char *json, const char *const script[])
{
	char *argv[8] = { "trocar", "capture", "--rule", "api", "--wait", (char *)json };
	size_t bytes;
	pthread_t thread;
	FILE *o, *e;
	int status;

	free(out);
	free(err);
	o = open_memstream(&out, &bytes);
	e = open_memstream(&err, &bytes);
	answers = script;
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	status = command_main(json ? 6 : 5, argv, o, e);
	pthread_join(thread, NULL);
	fclose(o);
	fclose(e);
	return status;
}

static void follows_until_the_end(void **state)
{
	static const char *const script[] = {
		SUBSCRIBED,
		STARTED("[\"aa\"]"),
		LINES("{\"type\":\"session.start\",\"session\":\"aa\"}", "0", "true"),
		LINES("", "0", "false"),
		LINES(END("other", "inconclusive") "," END("aa", "complete"), "0", "false"),
		NULL,
	};

	assert_int_equal(run(NULL, script), COMMAND_FINE);
	assert_string_equal(out, "session aa started: cgroup /a, ends in 100 ms\n"
				 "session aa ended, complete: aa stalled\n");
	assert_string_equal(err, "");
	/* It follows from before, so that no line is missed. */
	assert_true(strstr(asked, "\"subscribe\"") < strstr(asked, "\"session.start\""));
	assert_non_null(strstr(asked, "{\"subscription\":7}"));
}

/* The agent's words are those of JSON; the command line has options. */
static void refusals_name_options(void **state)
{
	static const struct {
		const char *message, *shown;
	} cases[] = {
		{ "params.signals: want [\\\"auto\\\"], or a non-empty array of: oncpu",
		  "trocar: --signals: want auto, or with commas between and none twice any of: oncpu" },
		{ "params.during_ms: not such a value", "trocar: --during-ms: not such a value\n" },
		{ "params.session: want 1 to 16 of a session's digits",
		  "trocar: session: want 1 to 16 of a session's digits\n" },
		{ "busy", "trocar: busy\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char answer[256];
		const char *const script[] = { SUBSCRIBED, answer, NULL };

		snprintf(answer, sizeof(answer), NO("{\"code\":-32602,\"message\":\"%s\"}"),
			 cases[i].message);
		assert_int_equal(run(NULL, script), COMMAND_FAILED);
		assert_memory_equal(err, cases[i].shown, strlen(cases[i].shown));
		assert_null(strstr(err, "params"));
	}
}

static void exits_by_the_worst_verdict(void **state)
{
	static const struct {
		const char *lines;
		int status;
	} cases[] = {
		{ LINES(END("aa", "complete") "," END("bb", "complete"), "0", "false"),
		  COMMAND_FINE },
		{ LINES(END("aa", "partial") "," END("bb", "complete"), "0", "false"),
		  COMMAND_PARTIAL },
		{ LINES(END("aa", "inconclusive") "," END("bb", "partial"), "0", "false"),
		  COMMAND_INCONCLUSIVE },
		{ LINES(END("aa", "word of a later agent") "," END("bb", "partial"), "0", "false"),
		  COMMAND_INCONCLUSIVE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const script[] = { SUBSCRIBED, STARTED("[\"aa\",\"bb\"]"),
					       cases[i].lines, NULL };

		assert_int_equal(run(NULL, script), cases[i].status);
	}
}

/* The names go to the agent one by one, also those that are none: it reports the fault. */
static void sends_signals(void **state)
{
	static const char *const script[] = {
		SUBSCRIBED,
		STARTED("[\"aa\"]"),
		LINES(END("aa", "complete"), "0", "false"),
		NULL,
	};

	assert_int_equal(run("--signals=offcpu,pools,,x", script), COMMAND_FINE);
	assert_non_null(strstr(asked, "\"signals\":[\"offcpu\",\"pools\",\"\",\"x\"]"));
}

static void prints_json(void **state)
{
	static const char *const script[] = {
		SUBSCRIBED,
		STARTED("[\"aa\"]"),
		LINES(END("aa", "partial"), "0", "false"),
		NULL,
	};

	assert_int_equal(run("--json", script), COMMAND_PARTIAL);
	assert_string_equal(out, "{\"session\":\"aa\",\"cgroup\":\"/a\",\"ends_in_ms\":100,"
				 "\"sessions\":[\"aa\"]}\n" END("aa", "partial") "\n");
}

static void says_what_fails(void **state)
{
	static const char *const held[] = {
		SUBSCRIBED,
		NO("{\"code\":-32003,\"message\":\"held back: cooldown\",\"data\":{\"retry_ms\":1500}}"),
		NULL,
	};
	static const char *const full[] = { NO("{\"code\":-32603,\"message\":\"4 subscriptions\"}"),
					    NULL };
	static const char *const gone[] = { SUBSCRIBED, STARTED("[\"aa\"]"), NULL };
	static const char *const odd[] = { SUBSCRIBED, STARTED("[1]"), NULL };
	static const char *const none[] = { SUBSCRIBED, STARTED("[]"), NULL };

	assert_int_equal(run(NULL, held), COMMAND_HELD);
	assert_string_equal(err, "trocar: held back: cooldown; try again in 1.5 s\n");
	assert_int_equal(run(NULL, full), COMMAND_FAILED);
	assert_int_equal(run(NULL, gone), COMMAND_UNREACHABLE);
	assert_int_equal(run(NULL, odd), COMMAND_FAILED);
	assert_int_equal(run(NULL, none), COMMAND_FAILED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_TESTS(capture)
{
	const struct CMUnitTest tests[] = {
		TEST(follows_until_the_end), TEST(exits_by_the_worst_verdict),
		TEST(sends_signals),	     TEST(prints_json),
		TEST(says_what_fails),	     TEST(refusals_name_options),
	};

	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
