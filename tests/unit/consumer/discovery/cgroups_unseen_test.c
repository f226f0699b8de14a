/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreadable cgroups are reported when they begin and when they grow, and not too often. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <errno.h>

#include "consumer/discovery/cgroups_unseen.h"
#include "shared/tools/clock.h"

#define LATER ((CGROUPS_UNSEEN_EVERY_S + 1) * NSEC_PER_SEC)

static struct fake *fake;
static uint64_t now_ns;

static int setup(void **state)
{
	fake = fake_new();
	now_ns = 1000 * NSEC_PER_SEC;
	return 0;
}

static int teardown(void **state)
{
	if (fake)
		fake_free(fake);
	fake = NULL;
	return 0;
}

static void unread(struct cgroupfs_unread *u, uint64_t count)
{
	*u = (struct cgroupfs_unread){};
	for (uint64_t i = 0; i < count; i++)
		cgroupfs_unread_add(u, i ? "/other" : "/user.slice/u\x1b[2J", -EACCES);
}

static size_t lines_after_check(void)
{
	cgroups_unseen_check(&fake->a.unseen, now_ns);
	return fake_count(fake, "error");
}

static void is_last(const char *code, const char *count, const char *error)
{
	_cleanup_json_ json_object *line = fake_last(fake, "error");

	assert_non_null(line);
	assert_string_equal(fake_text(line, "code"), code);
	assert_string_equal(fake_text(line, "count"), count);
	if (error)
		assert_string_equal(fake_text(line, "error"), error);
	else
		assert_null(fake_text(line, "error"));
}

static void test_directories(void **state)
{
	struct cgroupfs_unread *u;

	if (!fake)
		skip();
	u = &fake->a.cgroups.left.unread;
	assert_int_equal(lines_after_check(), 0);
	unread(u, 2);
	assert_int_equal(lines_after_check(), 1);
	is_last("cgroups_unreadable", "2", "EACCES");
	/* It lasts: nothing new. It grows: reported, but not at once. */
	now_ns += LATER;
	assert_int_equal(lines_after_check(), 1);
	unread(u, 3);
	assert_int_equal(lines_after_check(), 2);
	unread(u, 4);
	now_ns += LATER / 2;
	assert_int_equal(lines_after_check(), 2);
	now_ns += LATER;
	assert_int_equal(lines_after_check(), 3);
	is_last("cgroups_unreadable", "4", "EACCES");
}

/* A user that opens and closes cgroups as fast as possible gets one line in five minutes. */
static void test_flapping(void **state)
{
	size_t lines;

	if (!fake)
		skip();
	for (int i = 0; i < 600; i++) {
		unread(&fake->a.cgroups.unknown, i % 2);
		now_ns += NSEC_PER_SEC;
		lines = lines_after_check();
	}
	assert_in_range(lines, 2, 3);
	is_last("cgroups_unknown", "1", "EACCES");
}

static void test_limits_and_root(void **state)
{
	if (!fake)
		skip();
	fake->a.cgroups.left.cut = true;
	assert_int_equal(lines_after_check(), 1);
	is_last("cgroups_cut", "1", NULL);
	fake->a.cgroups.walk_error = -EACCES;
	assert_int_equal(lines_after_check(), 2);
	is_last("cgroups_unreadable", "1", "EACCES");
	fake->a.cgroups.walk_error = 0;
	fake->a.cgroups.left.cut = false;
	assert_int_equal(lines_after_check(), 2);
}

UNIT_TESTS(cgroups_unseen)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_directories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flapping, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits_and_root, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
