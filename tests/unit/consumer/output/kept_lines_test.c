/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "consumer/output/kept_lines.h"
#include "shared/json/jsonw.h"

#define SPACE 4096u

static struct kept_lines *kept;
static struct jsonw w;

static int setup(void **state)
{
	jsonw_init(&w, 1u << 20);
	return kept_lines_new(SPACE, &kept);
}

static int teardown(void **state)
{
	jsonw_done(&w);
	kept_lines_free(kept);
	return 0;
}

static void put(const char *type, unsigned int session, int n)
{
	char line[256];

	snprintf(
		line, sizeof(line),
		"{\"v\":1,\"type\":\"%s\",\"host\":\"h\",\"boot_id\":\"b\",\"session\":\"%016x\",\"n\":%d}\n",
		type, session, n);
	kept_lines_put(kept, line, strlen(line), 1);
}

static void writes(const char *session, const char *expected)
{
	jsonw_reset(&w);
	assert_int_equal(kept_lines_write(kept, session, &w), 0);
	assert_string_equal(strndupa(w.data, w.bytes), expected);
}

/* Each session has its lines, in order; without an id it is the last that has ended. */
static void test_by_session(void **state)
{
	static const char other[] =
		"{\"v\":1,\"type\":\"health\",\"host\":\"\\\"session\\\":\\\"\"}\n";

	assert_int_equal(kept_lines_write(kept, NULL, &w), -ENOENT);
	put("session.start", 0xa, 1);
	kept_lines_put(kept, other, strlen(other), 1);
	put("session.start", 0xb, 2);
	assert_int_equal(kept_lines_write(kept, NULL, &w), -ENOENT);
	put("session.end", 0xa, 3);
	put("stack", 0xb, 4);
	writes(NULL,
	       "\"session\":\"000000000000000a\",\"lines\":["
	       "{\"v\":1,\"type\":\"session.start\",\"host\":\"h\",\"boot_id\":\"b\",\"session\":\"000000000000000a\",\"n\":1},"
	       "{\"v\":1,\"type\":\"session.end\",\"host\":\"h\",\"boot_id\":\"b\",\"session\":\"000000000000000a\",\"n\":3}],"
	       "\"omitted\":0");
	writes("000000000000000b",
	       "\"session\":\"000000000000000b\",\"lines\":["
	       "{\"v\":1,\"type\":\"session.start\",\"host\":\"h\",\"boot_id\":\"b\",\"session\":\"000000000000000b\",\"n\":2},"
	       "{\"v\":1,\"type\":\"stack\",\"host\":\"h\",\"boot_id\":\"b\",\"session\":\"000000000000000b\",\"n\":4}],"
	       "\"omitted\":0");
	assert_int_equal(kept_lines_write(kept, "00000000", &w), -EEXIST);
	assert_int_equal(kept_lines_write(kept, "1", &w), -ENOENT);
}

/* Labels that have the names of keys make no line one of a session, nor its end. */
static void test_labels(void **state)
{
	static const char lines[] =
		"{\"v\":1,\"type\":\"process.match\",\"host\":\"h\",\"boot_id\":\"b\",\"rule\":\"r\","
		"\"labels\":{\"session\":\"000000000000000c\"},\"pid\":1}\n"
		"{\"v\":1,\"type\":\"stack\",\"host\":\"h\",\"boot_id\":\"b\","
		"\"session\":\"000000000000000a\",\"labels\":{\"type\":\"session.end\"}}\n"
		"{\"v\":1,\"boot_id\":\"\n{\"boot_id\":\"b\",\"session\":\"00\n";

	kept_lines_put(kept, lines, strlen(lines), 4);
	assert_int_equal(kept_lines_write(kept, "000000000000000c", &w), -ENOENT);
	assert_int_equal(kept_lines_write(kept, NULL, &w), -ENOENT);
	jsonw_reset(&w);
	assert_int_equal(kept_lines_write(kept, "000000000000000a", &w), 0);
}

static uint64_t number_of(const char *key)
{
	uint64_t number = 0;
	const char *at = strstr(strndupa(w.data, w.bytes), key);

	assert_non_null(at);
	assert_int_equal(sscanf(at + strlen(key), "%lu", &number), 1);
	return number;
}

static uint64_t count_lines(void)
{
	uint64_t n = 0;

	for (const char *at = w.data;
	     (at = memmem(at, w.bytes - (size_t)(at - w.data), "{\"v\"", 4)); at++)
		n++;
	return n;
}

/* The oldest lines go, and are counted for the session that they were of. */
static void test_bound(void **state)
{
	uint64_t held = 0;

	for (int i = 0; i < 1000; i++)
		put("stack", i < 500 ? 1 : 2, i);
	put("session.end", 2, 0);
	for (unsigned int i = 1; i <= 2; i++) {
		char id[32];

		snprintf(id, sizeof(id), "%016x", i);
		jsonw_reset(&w);
		assert_int_equal(kept_lines_write(kept, id, &w), 0);
		assert_int_equal(count_lines() + number_of("\"omitted\":"), i == 1 ? 500 : 501);
		held += count_lines();
		if (i == 2)
			assert_non_null(memmem(w.data, w.bytes, "\"n\":999}", 8));
	}
	assert_in_range(held, SPACE / 2 / 80, SPACE / 60);
}

/* A session with many lines drives none of another out, however old that is. */
static void test_shared(void **state)
{
	put("session.start", 1, 0);
	put("stack", 1, 1);
	put("session.end", 1, 2);
	for (int i = 0; i < 1000; i++)
		put("stack", i % 2 ? 2 : 3, i);
	jsonw_reset(&w);
	assert_int_equal(kept_lines_write(kept, "0000000000000001", &w), 0);
	assert_int_equal(count_lines(), 3);
	assert_int_equal(number_of("\"omitted\":"), 0);
	for (int i = 2; i <= 3; i++) {
		jsonw_reset(&w);
		assert_int_equal(kept_lines_write(kept,
						  i == 2 ? "0000000000000002" : "0000000000000003",
						  &w),
				 0);
		assert_in_range(count_lines(), SPACE / 5 / 90, SPACE / 2 / 90);
		assert_int_equal(count_lines() + number_of("\"omitted\":"), 500);
	}
}

/* A line that would take more than its part is not kept, and the earlier ones stay. */
static void test_long_line(void **state)
{
	static const char head[] = "{\"boot_id\":\"b\",\"session\":\"0000000000000007\",\"";
	char line[SPACE];

	put("session.start", 7, 1);
	memset(line, 'x', sizeof(line));
	memcpy(line, head, strlen(head));
	line[sizeof(line) - 1] = '\n';
	kept_lines_put(kept, line, sizeof(line), 1);
	jsonw_reset(&w);
	assert_int_equal(kept_lines_write(kept, "0000000000000007", &w), 0);
	assert_int_equal(count_lines(), 1);
	assert_int_equal(number_of("\"omitted\":"), 1);
}

/* Of more sessions than are counted the first are forgotten. */
static void test_many_sessions(void **state)
{
	for (unsigned int i = 1; i <= 3 * KEPT_LINES_SESSIONS; i++)
		put("session.end", i, 0);
	assert_int_equal(kept_lines_write(kept, "0000000000000001", &w), -ENOENT);
	jsonw_reset(&w);
	assert_int_equal(kept_lines_write(kept, NULL, &w), 0);
	assert_int_equal(count_lines(), 1);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(kept_lines)
{
	const struct CMUnitTest tests[] = {
		EACH(test_by_session), EACH(test_labels), EACH(test_bound),
		EACH(test_long_line),  EACH(test_shared), EACH(test_many_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
