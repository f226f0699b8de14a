/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <stdio.h>
#include <string.h>

#include "ctl/view/labels.h"
#include "tests/unit/ctl/events_testing.h"

static struct store store;
static struct labels labels;

static int setup(void **state)
{
	if (store_init(&store, 8u << 20) < 0)
		return -1;
	labels_init(&labels, &store, false);
	return events_setup(state);
}

static int teardown(void **state)
{
	labels_done(&labels);
	store_done(&store);
	return events_teardown(state);
}

static struct json_text text_of(const char *text)
{
	return (struct json_text){ .data = text, .bytes = text ? strlen(text) : 0 };
}

/* The label of a frame of a function in a file; NULL: it has none. */
static uint32_t label_of(const char *fn, const char *module, const char *kind)
{
	struct event_frame frame = {
		.fn = text_of(fn),
		.module = text_of(module),
		.kind = text_of(kind),
	};
	uint32_t number, label;

	assert_int_equal(store_frame(&store, &frame, &number), 0);
	assert_int_equal(labels_frame(&labels, number, &label), 0);
	return label;
}

static void test_one_name_in_two_files(void **state)
{
	uint32_t kernel = label_of("memset", "kernel", "kernel");
	uint32_t libc = label_of("memset", "/lib/libc.so.6", "user");

	assert_int_not_equal(kernel, libc);
	assert_string_equal(labels_get(&labels, kernel), "memset");
	assert_string_equal(labels_get(&labels, libc), "memset");
	assert_string_equal(labels_module(&labels, kernel), "kernel");
	assert_string_equal(labels_module(&labels, libc), "libc.so.6");
	/* The same library at another path, as in a container, is the same. */
	assert_int_equal(label_of("memset", "/usr/lib/libc.so.6", "user"), libc);
}

static void test_joined(void **state)
{
	uint32_t kernel;

	labels.joined = true;
	kernel = label_of("memset", "kernel", "kernel");
	assert_int_equal(label_of("memset", "/lib/libc.so.6", "user"), kernel);
	assert_null(labels_module(&labels, kernel));
}

static void test_without(void **state)
{
	uint32_t nowhere = label_of("f", NULL, "user"), unnamed = label_of(NULL, "/a/b", "user");

	assert_null(labels_module(&labels, nowhere));
	assert_string_equal(labels_get(&labels, unnamed), "[b]");
	assert_string_equal(labels_module(&labels, unnamed), "b");
	assert_string_equal(labels_get(&labels, label_of(NULL, NULL, "kernel")), "[kernel]");
	assert_string_equal(labels_get(&labels, label_of(NULL, "/tmp/x", "jit")), "[jit]");
	/* What stands in a file's name drives no terminal. */
	assert_string_equal(labels_module(&labels, label_of("f", "/a/\x1b", "user")), "\\x1b");
}

/* In the report they are two rows, in folded stacks one line. */
static void test_command(void **state)
{
	events_write(EVENTS_STACK("1", "during", "web", "3", "3000000",
				  EVENTS_KERNEL("memset") "," EVENTS_USER("main"))
			     EVENTS_STACK("1", "during", "web", "1", "1000000",
					  EVENTS_USER("memset") "," EVENTS_USER("main")));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_non_null(
		strstr(events_out, "   75.0 %  -       -        75.0 %  memset    kernel\n"));
	assert_non_null(strstr(events_out, "   25.0 %  -       -        25.0 %  memset    a\n"));
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;main;memset 1\nweb;main;memset 3\n");
	assert_int_equal(events_command("folded", "--annotate", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;main;memset 1\nweb;main;memset_[k] 3\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(labels)
{
	const struct CMUnitTest tests[] = {
		TEST(one_name_in_two_files),
		TEST(joined),
		TEST(without),
		TEST(command),
	};

	return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
