/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/control/control_request.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char *asked; /* the line */
static int calls;

static int do_echo(void *context, const struct control_peer *peer, const struct json_node *params,
		   struct jsonw *result, struct control_error *error)
{
	calls++;
	if (params)
		jsonw_raw(result, NULL, asked + params->offset, params->extent);
	else
		jsonw_null(result, NULL);
	return 0;
}

static int do_fail(void *context, const struct control_peer *peer, const struct json_node *params,
		   struct jsonw *result, struct control_error *error)
{
	calls++;
	jsonw_object(result, NULL); /* half an answer: to be undone */
	error->code = CONTROL_HELD;
	strcpy(error->message, "cooldown");
	jsonw_object(&error->data, NULL);
	jsonw_u64(&error->data, "retry_ms", 5);
	jsonw_object_end(&error->data);
	return -1;
}

static int do_nothing(void *context, const struct control_peer *peer,
		      const struct json_node *params, struct jsonw *result,
		      struct control_error *error)
{
	return context ? -1 : 0;
}

static int do_huge(void *context, const struct control_peer *peer, const struct json_node *params,
		   struct jsonw *result, struct control_error *error)
{
	jsonw_array(result, NULL);
	for (int i = 0; i < 1000000; i++)
		jsonw_u64(result, NULL, 1234567890);
	jsonw_array_end(result);
	return 0;
}

/* A request of three parts, which then fails when it was asked to. */
struct parts {
	struct control_job job;
	unsigned int done;
	bool fails;
};

static int step_parts(struct control_job *job, struct jsonw *result, struct control_error *error)
{
	struct parts *p = (struct parts *)job;

	if (++p->done < 3)
		return 1;
	if (p->fails)
		return control_error_fail(error, CONTROL_NOT_FOUND, "after %u parts", p->done);
	jsonw_u64(result, NULL, p->done);
	return 0;
}

static void free_parts(struct control_job *job)
{
	calls++;
	free(job);
}

static int do_parts(void *context, const struct control_peer *peer, const struct json_node *params,
		    struct control_job **ret_job, struct control_error *error)
{
	struct parts *p;

	if (json_node_get(params, "not"))
		return control_error_fail(error, CONTROL_BAD_PARAMS, "not at all");
	p = calloc(1, sizeof(*p));
	assert_non_null(p);
	*p = (struct parts){ .job = { .step = step_parts, .free = free_parts },
			     .fails = json_node_get(params, "fail") };
	*ret_job = &p->job;
	return 0;
}

static const struct control_method methods[] = {
	{ "parts", false, .begin = do_parts },
	{ "echo", false, do_echo },
	{ "change", true, do_echo },
	{ "fail", false, do_fail },
	{ "silent", false, do_nothing },
	{ "huge", false, do_huge },
	{ 0 },
};

struct row {
	const char *line;
	const char *answer;
};

#define OK(id, result) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" result "}\n"
#define NO(id, code, words) \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" words
#define CALL "{\"jsonrpc\":\"2.0\",\"method\":"

static const struct row rows[] = {
	{ CALL "\"echo\",\"id\":1}", OK("1", "null") },
	{ CALL "\"echo\",\"id\":\"a\\u0000\\\"b\"}", OK("\"a\\u0000\\\"b\"", "null") },
	{ CALL "\"echo\",\"id\":null}", OK("null", "null") },
	{ CALL "\"echo\",\"id\":-1.50e3}", OK("-1.50e3", "null") },
	{ CALL "\"echo\",\"id\":18446744073709551614}", OK("18446744073709551614", "null") },
	{ CALL "\"echo\",\"id\":1,\"params\":{\"a\":[1]}} \t\r", OK("1", "{\"a\":[1]}") },
	{ CALL "\"echo\"}", "" },
	{ CALL "\"fail\"}", "" },
	{ CALL "\"none\"}", "" },
	{ CALL "\"fail\",\"id\":2}",
	  NO("2", "-32003", "cooldown\",\"data\":{\"retry_ms\":5}}}\n") },
	{ CALL "\"silent\",\"id\":2}", NO("2", "-32603", "the method gave no result\"}}\n") },
	{ CALL "\"huge\",\"id\":2}", NO("2", "-32603", "the answer would be longer") },
	{ CALL "\"change\",\"id\":2}",
	  NO("2", "-32001", "change is for root and the admin group; ") },
	{ CALL "\"none\",\"id\":2}", NO("2", "-32601", "there is no method \\\"none\\\"") },
	{ CALL "\"echo\\u0000\",\"id\":2}", NO("2", "-32600", "/method: ") },
	{ CALL "7,\"id\":2}", NO("2", "-32600", "/method: ") },
	{ CALL "\"echo\",\"id\":[]}", NO("null", "-32600", "/id: ") },
	{ CALL "\"echo\",\"id\":true}", NO("null", "-32600", "/id: ") },
	{ CALL "\"echo\",\"id\":NaN}", NO("null", "-32700", "byte 38: ") },
	{ CALL "\"echo\",\"id\":99999999999999999999}", NO("null", "-32600", "/id: ") },
	{ CALL "\"echo\",\"id\":2,\"params\":[1]}", NO("2", "-32600", "/params: ") },
	{ CALL "\"echo\",\"id\":2,\"params\":null}", NO("2", "-32600", "/params: ") },
	{ CALL "\"echo\",\"params\":[1]}", NO("null", "-32600", "/params: ") },
	{ CALL "\"echo\",\"id\":2,\"more\":1}", NO("2", "-32600", "/more: unknown key") },
	{ "{\"jsonrpc\":\"1.0\",\"method\":\"echo\",\"id\":2}", NO("2", "-32600", "/jsonrpc: ") },
	{ "{\"method\":\"echo\",\"id\":2}", NO("2", "-32600", "/jsonrpc: ") },
	{ "{}", NO("null", "-32600", "/jsonrpc: ") },
	{ "[" CALL "\"echo\",\"id\":1}]", NO("null", "-32600", "batches are not supported") },
	{ "\"echo\"", NO("null", "-32600", "a request is an object") },
	{ "null", NO("null", "-32600", "a request is an object") },
	{ "", NO("null", "-32700", "") },
	{ "{", NO("null", "-32700", "the JSON text ends too early") },
	{ "{\"a\":1,}", NO("null", "-32700", "byte 7: ") },
	{ "{a:1}", NO("null", "-32700", "byte 1: ") },
	{ "{} {}", NO("null", "-32700", "byte 3: ") },
	{ "{\"a\":\"\t\"}", NO("null", "-32700", "byte 6: ") },
	{ CALL "\"none\",\"id\":1,\"method\":\"echo\",\"id\":2}", OK("2", "null") },
	{ CALL "\"echo\",\"id\":-9223372036854775807}", OK("-9223372036854775807", "null") },
	{ CALL "\"echo\",\"id\":-9223372036854775808}", NO("null", "-32600", "/id: ") },
	{ CALL "\"echo\",\"id\":1e999}", NO("null", "-32600", "/id: ") },
	{ "{\"a\":\"\x01\"}", NO("null", "-32700", "byte 6 is no UTF-8 text") },
	{ "{\"a\":\"\xc0\x80\"}", NO("null", "-32700", "byte 6 is no UTF-8 text") },
	{ "{\"a\":\"\xed\xa0\x80\"}", NO("null", "-32700", "byte 6 is no UTF-8 text") },
	{ "{\"a\":\"\xf4\x90\x80\x80\"}", NO("null", "-32700", "byte 6 is no UTF-8 text") },
	{ "\xe2\x82", NO("null", "-32700", "byte 0 is no UTF-8 text") },
	{ CALL "\"parts\",\"id\":1.50}", OK("1.50", "3") },
	{ CALL "\"parts\",\"id\":\"x\\\"y\"}", OK("\"x\\\"y\"", "3") },
	{ CALL "\"parts\",\"id\":null}", OK("null", "3") },
	{ CALL "\"parts\"}", "" },
	{ CALL "\"parts\",\"id\":1,\"params\":{\"fail\":1}}", NO("1", "-32004", "after 3 parts") },
	{ CALL "\"parts\",\"params\":{\"fail\":1}}", "" },
	{ CALL "\"parts\",\"id\":1,\"params\":{\"not\":1}}", NO("1", "-32602", "not at all") },
};

static char *ask(const char *line, size_t bytes, bool admin, void *context)
{
	_cleanup_(jsonw_done) struct jsonw answer;
	struct control_peer peer = { .uid = 1000, .admin = admin };
	char *text;

	jsonw_init(&answer, CONTROL_ANSWER_BYTES);
	asked = line;
	assert_int_equal(control_request(methods, context, &peer, line, bytes, &answer), 0);
	assert_int_equal(jsonw_end(&answer), 0);
	text = calloc(1, answer.bytes + 1); /* the writer's text has no NUL */
	assert_non_null(text);
	if (answer.bytes)
		memcpy(text, answer.data, answer.bytes);
	return text;
}

static void test_rows(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *answer = ask(rows[i].line, strlen(rows[i].line), false, NULL);
		size_t bytes = strlen(rows[i].answer);

		if (strncmp(answer, rows[i].answer, bytes) || (!bytes && *answer))
			fail_msg("%s\n  gave     %s\n  expected %s", rows[i].line, answer,
				 rows[i].answer);
		if (*answer)
			assert_int_equal(answer[strlen(answer) - 1], '\n');
	}
}

static void test_admin_changes(void **state)
{
	const char *line = CALL "\"change\",\"id\":1}";
	_cleanup_free_ char *answer = NULL;

	calls = 0;
	answer = ask(line, strlen(line), true, NULL);
	assert_string_equal(answer, OK("1", "null"));
	assert_int_equal(calls, 1);
}

static void test_wordless_failure(void **state)
{
	const char *line = CALL "\"silent\",\"id\":1}";
	_cleanup_free_ char *answer = ask(line, strlen(line), true, &calls);

	assert_string_equal(answer, NO("1", "-32603", "silent failed\"}}\n"));
}

static void test_notification_is_called(void **state)
{
	const char *line = CALL "\"echo\"}";
	_cleanup_free_ char *answer = NULL;

	calls = 0;
	answer = ask(line, strlen(line), false, NULL);
	assert_string_equal(answer, "");
	assert_int_equal(calls, 1);
}

static void test_nul_inside(void **state)
{
	static const char line[] = "{}\0{}";
	_cleanup_free_ char *answer = ask(line, sizeof(line) - 1, false, NULL);

	assert_string_equal(answer, NO("null", "-32700", "byte 2 is no UTF-8 text\"}}\n"));
}

static void test_nesting(void **state)
{
	char line[256];
	size_t n;

	for (int depth = 30; depth < 80; depth++) {
		_cleanup_free_ char *answer = NULL;

		n = (size_t)sprintf(line, CALL "\"echo\",\"id\":1,\"params\":{\"a\":");
		memset(line + n, '[', (size_t)depth);
		memset(line + n + depth, ']', (size_t)depth);
		n += 2 * (size_t)depth;
		n += (size_t)sprintf(line + n, "}}");
		answer = ask(line, n, false, NULL);
		assert_non_null(strstr(answer, depth <= CONTROL_NESTING - 2 ? "result" : "nested"));
	}
}

/* The longest text there may be, as the id: too long for the answer's head, so it is left out. */
static void test_giant(void **state)
{
	size_t bytes = CONTROL_REQUEST_BYTES + 1;
	_cleanup_free_ char *line = malloc(bytes), *answer = NULL;

	memset(line, ' ', bytes);
	answer = ask(line, bytes, false, NULL);
	assert_non_null(strstr(answer, "at most 2101248 bytes"));
}

static void test_answer_without_room(void **state)
{
	_cleanup_(jsonw_done) struct jsonw answer;
	struct control_peer peer = { 0 };
	const char *line = CALL "\"none\",\"id\":\"0123456789012345678901234567890123456789\"}";

	jsonw_init(&answer, 110);
	assert_int_equal(control_request(methods, NULL, &peer, line, strlen(line), &answer), 0);
	assert_int_equal(strncmp(answer.data, NO("null", "-32601", ""), 40), 0);
}

UNIT_TESTS(control_request)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_admin_changes),
		cmocka_unit_test(test_wordless_failure),
		cmocka_unit_test(test_notification_is_called),
		cmocka_unit_test(test_nul_inside),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_giant),
		cmocka_unit_test(test_answer_without_room),
	};

	return cmocka_run_group_tests_name("control_request", tests, NULL, NULL);
}
