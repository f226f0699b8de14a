/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <string.h>

#include "ctl/view/program.h"

static struct store store;

static int setup(void **state)
{
	const struct event event = { .session = { .data = "1", .bytes = 1 } };
	uint32_t session;

	if (store_init(&store, 8u << 20) < 0)
		return -1;
	return store_session(&store, &event, 0, &session);
}

static int teardown(void **state)
{
	store_done(&store);
	return 0;
}

static uint32_t text(const char *word)
{
	const struct json_text json = { .data = word, .bytes = strlen(word) };
	uint32_t number;

	assert_int_equal(store_text(&store, &json, &number), 0);
	return number;
}

/* A stack of one frame in `module`, of a process of `exe` (STORE_NONE: not known). */
static void count(uint32_t exe, const char *module, const char *build_id, uint64_t ns)
{
	const struct event_frame event = {
		.module = { .data = module, .bytes = strlen(module) },
		.build_id = { .data = build_id, .bytes = strlen(build_id) },
		.kind = { .data = "user", .bytes = 4 },
	};
	const struct store_value value = { .count = 1, .weight_ns = ns, .threads = 1 };
	struct store_key key = { .exe = exe };
	uint32_t frame;

	assert_int_equal(store_frame(&store, &event, &frame), 0);
	assert_int_equal(store_count(&store, &key, &frame, 1, &value), 0);
}

static void is_program(const char *path, const char *build_id)
{
	struct store_frame program;

	assert_int_equal(program_find(&store, &program), 0);
	assert_string_equal(pool_text(&store.texts, program.module), path);
	if (build_id)
		assert_string_equal(pool_text(&store.texts, program.build_id), build_id);
	else
		assert_int_equal(program.build_id, STORE_NONE);
}

/* By the time of all of its stacks, in whichever file they end; not by the number of stacks. */
static void test_has_the_most_time(void **state)
{
	count(text("/bin/web"), "/lib/libc.so.6", "cc", 60);
	count(text("/bin/log"), "/bin/log", "aa", 30);
	count(text("/bin/log"), "/lib/libc.so.6", "cc", 40);
	is_program("/bin/log", "aa");
	count(text("/bin/web"), "/lib/libz.so.1", "ee", 20);
	is_program("/bin/web", NULL);
	count(text("/bin/web"), "/bin/web", "bb", 1);
	is_program("/bin/web", "bb");
}

static void test_is_not_known(void **state)
{
	struct store_frame program;

	assert_int_equal(program_find(&store, &program), 0);
	assert_int_equal(program.module, STORE_NONE);
	count(STORE_NONE, "/lib/libc.so.6", "cc", 60);
	assert_int_equal(program_find(&store, &program), 0);
	assert_int_equal(program.module, STORE_NONE);
}

UNIT_TESTS(program)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_has_the_most_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_is_not_known, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
