/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/symbolize/stack_lines.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define HEAD                                                                             \
	"\"v\":1,\"type\":\"stack\",\"ts\":\"2026-11-21T15:59:01Z\",\"session\":\"s1\"," \
	"\"labels\":{\"a\":[1,{\"b\":2}]},\"signal\":\"oncpu\",\"phase\":\"during\","    \
	"\"comm\":\"c\""
#define COUNTS	 ",\"threads\":1,\"count\":3,\"weight_ns\":9"
#define NAMED	 "{\"fn\":\"f\",\"offset\":1,\"kind\":\"user\"}"
#define NAMELESS "{\"kind\":\"user\",\"fn\":null,\"why\":\"x\",\"later\":[{}],\"offset\":2}"
#define KERNEL	 "{\"fn\":\"k\",\"kind\":\"kernel\"}"

static const struct offline_frame nothing;

/* One frame of the line that is being taken. */
struct taken {
	struct event_frame frames[64];
	const char *texts[64];
	size_t bytes[64], n;
};

static bool take(void *context, struct json_reader *s, const struct event *event)
{
	struct taken *t = context;

	t->n = 0;
	json_reader_array(s);
	while (json_reader_element(s)) {
		json_reader_peek(s);
		t->texts[t->n] = s->at;
		assert_true(event_frame(s, &t->frames[t->n]));
		t->bytes[t->n] = (size_t)(s->at - t->texts[t->n]);
		t->n++;
	}
	return true;
}

/* Takes a line into the stack; every nameless frame gets the found name. */
static void add(struct stack_lines *l, const char *line, const struct offline_frame *found)
{
	struct event_fault fault;
	struct event event;
	struct taken t;

	assert_true(event_read(line, strlen(line), take, &t, &event, &fault));
	if (event.part < 2)
		assert_int_equal(stack_lines_begin(l, &event, line, strlen(line)), 0);
	else
		assert_true(stack_lines_is(l, &event));
	for (size_t i = 0; i < t.n; i++)
		assert_int_equal(stack_lines_frame(l, &t.frames[i], t.texts[i], t.bytes[i],
						   t.frames[i].fn.data ? &nothing : found),
				 0);
}

/* What is written, one string; the caller frees. */
static char *written(struct stack_lines *l, size_t max_bytes)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(stack_lines_write(l, max_bytes, 5, out), 0);
	fclose(out);
	return text;
}

static void test_nothing_found(void **state)
{
	_cleanup_(stack_lines_done) struct stack_lines l;
	_cleanup_free_ char *text = NULL;

	stack_lines_init(&l);
	add(&l, "{" HEAD COUNTS ",\"unnamed\":7,\"frames\":[" NAMED "," NAMELESS "],\"new\":null}",
	    &nothing);
	text = written(&l, 8096);
	assert_string_equal(text, "{" HEAD COUNTS ",\"new\":null,\"unnamed\":1,\"frames\":[" NAMED
				  "," NAMELESS "]}\n");
}

static void test_found(void **state)
{
	static const char name[] = "\"fn\":\"g\",\"raw\":\"_g\"",
			  source[] = "\"source\":{\"file\":\"/f\",\"line\":4}";
	struct offline_frame found = { .name = name, .name_bytes = sizeof(name) - 1 };
	_cleanup_(stack_lines_done) struct stack_lines l;
	_cleanup_free_ char *text = NULL;

	stack_lines_init(&l);
	add(&l, "{" HEAD COUNTS ",\"unnamed\":1,\"frames\":[" NAMELESS "]}", &found);
	text = written(&l, 8096);
	assert_string_equal(text, "{" HEAD COUNTS ",\"frames\":[{\"fn\":\"g\",\"raw\":\"_g\","
				  "\"kind\":\"user\",\"later\":[{}],\"offset\":2}]}\n");
	free(text);
	found.source = source;
	found.source_bytes = sizeof(source) - 1;
	add(&l, "{" HEAD COUNTS ",\"frames\":[" NAMELESS "]}", &found);
	text = written(&l, 8096);
	assert_non_null(strstr(text, "\"offset\":2,\"source\":{\"file\":\"/f\",\"line\":4}}]}"));
}

/* Where the stack no longer fits a line it becomes parts, and parts come together again. */
static void test_parts(void **state)
{
	static const char pad[] = "\"fn\":\"0123456789012345678901234567890123456789\"";
	const struct offline_frame found = { .name = pad, .name_bytes = sizeof(pad) - 1 };
	_cleanup_(stack_lines_done) struct stack_lines l;
	_cleanup_free_ char *text = NULL;
	unsigned int lines = 0;

	stack_lines_init(&l);
	add(&l, "{" HEAD COUNTS ",\"frames\":[" NAMELESS "," NAMELESS "," NAMELESS "]}", &found);
	text = written(&l, 480);
	for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
		assert_true(strchr(at, '\n') - at < 480);
		assert_int_equal(!lines, strstr(at, "\"count\":3") &&
						 strstr(at, "\"count\":3") < strchr(at, '\n'));
		lines++;
	}
	assert_int_equal(lines, 2);
	assert_non_null(strstr(text, "\"stack_id\":\"symbolize-5\",\"part\":1,\"parts\":2}\n"));
	assert_non_null(strstr(text, "\"stack_id\":\"symbolize-5\",\"part\":2,\"parts\":2}\n"));
}

static void test_joined(void **state)
{
	_cleanup_(stack_lines_done) struct stack_lines l;
	_cleanup_free_ char *text = NULL;
	struct event_frame frame = { .kind = { "user", 4, false } };

	stack_lines_init(&l);
	add(&l, "{" HEAD COUNTS ",\"frames\":[" NAMED "],\"stack_id\":17,\"part\":1,\"parts\":2}",
	    &nothing);
	add(&l, "{" HEAD ",\"frames\":[" KERNEL "],\"stack_id\":\"17\",\"part\":2,\"parts\":2}",
	    &nothing);
	assert_false(stack_lines_is_caller(&l, &frame)); /* behind the kernel */
	text = written(&l, 8096);
	assert_string_equal(text, "{" HEAD COUNTS ",\"frames\":[" NAMED "," KERNEL "]}\n");
	free(text);
	text = written(&l, 10); /* one frame each, and the old id */
	assert_non_null(strstr(text, "\"stack_id\":\"17\",\"part\":2,\"parts\":2}\n"));
}

static void test_callers(void **state)
{
	struct event_frame user = { .kind = { "user", 4, false } },
			   kernel = { .kind = { "kernel", 6, false } };
	_cleanup_(stack_lines_done) struct stack_lines l;

	stack_lines_init(&l);
	add(&l, "{" HEAD COUNTS ",\"frames\":[]}", &nothing);
	assert_false(stack_lines_is_caller(&l, &user));
	assert_int_equal(stack_lines_frame(&l, &kernel, KERNEL, sizeof(KERNEL) - 1, &nothing), 0);
	assert_true(stack_lines_is_caller(&l, &kernel));
	assert_false(stack_lines_is_caller(&l, &user));
	assert_int_equal(stack_lines_frame(&l, &user, NAMED, sizeof(NAMED) - 1, &nothing), 0);
	assert_true(stack_lines_is_caller(&l, &user));
	for (size_t i = l.n; i < STORE_FRAMES_MAX; i++)
		assert_int_equal(stack_lines_frame(&l, &user, "{}", 2, &nothing), 0);
	assert_int_equal(stack_lines_frame(&l, &user, "{}", 2, &nothing), -E2BIG);
}

UNIT_TESTS(stack_lines)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_found), cmocka_unit_test(test_found),
		cmocka_unit_test(test_parts),	      cmocka_unit_test(test_joined),
		cmocka_unit_test(test_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
