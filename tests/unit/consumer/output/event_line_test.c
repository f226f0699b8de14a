/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <unistd.h>

#include "consumer/output/event_line.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define MAX_BYTES 4096

static struct host host;
static char path[] = "/tmp/trocar-line-XXXXXX";
static struct event_lines lines = { .host = &host, .max_bytes = MAX_BYTES };

static int setup(void **state)
{
	strcpy(path, "/tmp/trocar-line-XXXXXX");
	close(mkstemp(path));
	strcpy(host.name, "db-1 \"quoted\"");
	strcpy(host.boot_id, "0f8fad5b-d9cb-469f-a165-70867728950e");
	if (output_queue_new(path, 1u << 20, &lines.output) < 0)
		return -1;
	return output_queue_start(lines.output);
}

static int teardown(void **state)
{
	if (lines.output) {
		output_queue_stop(lines.output, 5000);
		output_queue_free(lines.output);
	}
	return unlink(path);
}

/* Ends the output and returns its text. */
static char *finish(void)
{
	char *text;
	size_t bytes;

	output_queue_stop(lines.output, 5000);
	output_queue_free(TAKE_PTR(lines.output));
	assert_int_equal(io_read_file(AT_FDCWD, path, 1u << 20, &text, &bytes), 0);
	return text;
}

/* The one line there is, parsed strictly. */
static json_object *only_line(void)
{
	_cleanup_free_ char *text = finish();
	json_tokener *tokener = json_tokener_new();
	size_t bytes = strlen(text);
	json_object *root;

	assert_true(bytes > 0 && bytes <= MAX_BYTES);
	assert_ptr_equal(strchr(text, '\n'), text + bytes - 1);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	root = json_tokener_parse_ex(tokener, text, (int)bytes - 1);
	if (!root)
		fail_msg("not JSON: %s", text);
	json_tokener_free(tokener);
	return root;
}

static const char *get(json_object *line, const char *key)
{
	return json_object_get_string(json_object_object_get(line, key));
}

static void test_plain(void **state)
{
	json_object *line;
	struct jsonw w;

	event_line_begin(&lines, &w, "agent.stop", NULL);
	jsonw_string(&w, "reason", "SIGTERM");
	assert_true(event_line_end(&lines, &w));
	line = only_line();
	assert_string_equal(get(line, "v"), "1");
	assert_string_equal(get(line, "type"), "agent.stop");
	assert_int_equal(strlen(get(line, "ts")), 30);
	assert_string_equal(get(line, "host"), "db-1 \"quoted\"");
	assert_string_equal(get(line, "boot_id"), host.boot_id);
	assert_string_equal(get(line, "reason"), "SIGTERM");
	/* What does not apply is absent. */
	assert_null(json_object_object_get(line, "rule"));
	assert_null(json_object_object_get(line, "cgroup"));
	assert_null(json_object_object_get(line, "session"));
	assert_null(json_object_object_get(line, "labels"));
	json_object_put(line);
}

static void test_subject(void **state)
{
	struct rule_label labels[2] = { { "team", "pay\"ments\n" }, { "k\\ey", "\xff\xc3\xa9" } };
	struct rule rule = { .name = "api", .n_labels = 2, .labels = labels };
	struct event_subject subject = { .rule = &rule,
					 .generation = 7,
					 .cgroup = "/a\tb\x01/\xe2\x82",
					 .cgroup_id = 99,
					 .session = 0xdeadbeef };
	json_object *line, *map;
	struct jsonw w;

	event_line_begin(&lines, &w, "watch.start", &subject);
	assert_true(event_line_end(&lines, &w));
	line = only_line();
	assert_string_equal(get(line, "session"), "00000000deadbeef");
	assert_string_equal(get(line, "rule"), "api");
	assert_string_equal(get(line, "generation"), "7");
	assert_string_equal(get(line, "cgroup_id"), "99");
	assert_int_equal(strncmp(get(line, "cgroup"), "/a\tb\x01/", 6), 0);
	assert_null(json_object_object_get(line, "container_id"));
	assert_null(json_object_object_get(line, "pod_uid"));
	map = json_object_object_get(line, "labels");
	assert_string_equal(get(map, "team"), "pay\"ments\n");
	assert_string_equal(get(map, "k\\ey"), "\xef\xbf\xbd\xc3\xa9");
	json_object_put(line);
}

/* Container and pod stand where the path has them, and nowhere else. */
static void test_container(void **state)
{
	static const char pod[] =
		"/kubepods/pod99dcb84d2a34f7e338778606703258c4/"
		"0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e1f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e";
	struct event_subject subject = { .cgroup = pod, .container = container_parse(pod) };
	json_object *line;
	struct jsonw w;

	event_line_begin(&lines, &w, "stack", &subject);
	assert_true(event_line_end(&lines, &w));
	line = only_line();
	assert_string_equal(get(line, "container_id"), strrchr(pod, '/') + 1);
	assert_string_equal(get(line, "pod_uid"), "99dcb84d2a34f7e338778606703258c4");
	json_object_put(line);
}

/* At the wall a line stands whole, one byte beyond it is not there at all. */
static void test_wall(void **state)
{
	_cleanup_free_ char *text = NULL, *pad = malloc(MAX_BYTES);
	size_t queued = 0, longest = 0, at = 0;

	assert_non_null(pad);
	memset(pad, 'p', MAX_BYTES);
	for (size_t n = MAX_BYTES - 400; n < MAX_BYTES; n++) {
		struct jsonw w;

		event_line_begin(&lines, &w, "error", NULL);
		jsonw_string_n(&w, "pad", pad, n);
		queued += event_line_end(&lines, &w);
	}
	assert_true(queued > 0 && queued < 400);
	text = finish();
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t bytes = (size_t)(end - line) + 1;

		assert_int_equal(end[-1], '}');
		assert_true(bytes <= MAX_BYTES);
		longest = bytes > longest ? bytes : longest;
		at++;
	}
	assert_int_equal(at, queued);
	assert_int_equal(longest, MAX_BYTES);
}

static void fill(void *context, struct jsonw *w)
{
	jsonw_u64(w, "count", *(const uint64_t *)context);
}

static void test_error(void **state)
{
	uint64_t count = 12;
	json_object *line;

	event_line_error(&lines, NULL, "samples_full", "enlarge it", fill, &count,
			 "%d of \"%s\" lost", 12, "x\n");
	line = only_line();
	assert_string_equal(get(line, "type"), "error");
	assert_string_equal(get(line, "code"), "samples_full");
	assert_string_equal(get(line, "message"), "12 of \"x\n\" lost");
	assert_string_equal(get(line, "hint"), "enlarge it");
	assert_string_equal(get(line, "count"), "12");
	json_object_put(line);
}

/* A message of any length is cut, and the line stands. */
static void test_error_long(void **state)
{
	_cleanup_free_ char *name = calloc(1, 100000);
	json_object *line;

	assert_non_null(name);
	memset(name, '\x02', 99999);
	event_line_error(&lines, NULL, "rules_file", "hint", NULL, NULL, "%s", name);
	line = only_line();
	assert_int_equal(strlen(get(line, "message")), 511);
	json_object_put(line);
}

static void test_dropped(void **state)
{
	struct jsonw w;
	int queued = 0;

	/* A full queue reports it to the caller. */
	for (int i = 0; i < 100000 && queued == i; i++) {
		event_line_begin(&lines, &w, "error", NULL);
		jsonw_string_n(&w, "pad", path, sizeof(path) - 1);
		queued += event_line_end(&lines, &w);
		if (i == 0) {
			/* Stopped: no thread takes lines from the queue any more. */
			output_queue_stop(lines.output, 5000);
		}
	}
	assert_true(queued < 100000);
}

static void test_session_text(void **state)
{
	char text[SESSION_TEXT_BYTES];

	event_line_session_text(0, text);
	assert_string_equal(text, "0000000000000000");
	event_line_session_text(UINT64_MAX, text);
	assert_string_equal(text, "ffffffffffffffff");
}

UNIT_TESTS(event_line)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_subject, setup, teardown),
		cmocka_unit_test_setup_teardown(test_container, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wall, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
		cmocka_unit_test(test_session_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
