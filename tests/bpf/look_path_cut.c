/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look_path_cut.c: the path that `looks` reports for a file where it is longer or deeper than the
 * limits, or renamed as it is read.
 */
#include <pthread.h>

#include "look_path_fixture.h"
#include "shared/tools/macro.h"

HARNESS_LOADS("looks", "ranges*");

#define LONG_NAMES 12
#define DEEP_NAMES 70
#define RENAMES	   2000

static int open_long(void)
{
	char path[LINK_BYTES] = "";
	size_t n = 0;

	for (int i = 0; i < LONG_NAMES; i++) {
		memset(path + n, 'a' + i, 20 + 15 * (size_t)i);
		n += 20 + 15 * (size_t)i;
		path[n++] = '/';
	}
	memset(path + n, 'z', 255);
	path[n + 255] = '\0';
	return open_at(path);
}

/* Whole names are left out in the middle, and counted; the last one is the longest that there is.
 */
static void long_paths_are_cut(void **state)
{
	struct look_on on = look_at(open_long);
	size_t whole = strlen(scene->link), told = strlen(on.path);

	assert_int_equal(on.path_end, LOOK_PATH_WHOLE);
	assert_true(whole > 1000 && told > 255 && on.path_cut);
	assert_int_equal(told + on.path_cut, whole);
	assert_memory_equal(on.path, scene->link, on.path_head);
	assert_string_equal(on.path + on.path_head, scene->link + on.path_head + on.path_cut);
	assert_true(on.path_head > 0 && on.path_head <= LOOK_PATH_HEAD);
	assert_int_equal(scene->link[on.path_head], '/');
	assert_int_equal(on.path[on.path_head], '/');
	assert_clean(&on);
}

static int open_deep(void)
{
	char path[LINK_BYTES] = "";

	for (int i = 0; i < DEEP_NAMES; i++)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "d%d/", i);
	strcat(path, "file");
	return open_at(path);
}

/* More names than are walked: those at the end, and that it is not all. */
static void deep_paths_are_cut(void **state)
{
	struct look_on on = look_at(open_deep);
	size_t told = strlen(on.path), whole = strlen(scene->link);

	assert_int_equal(on.path_end, LOOK_PATH_DEEP);
	assert_true(told > 100 && told < whole);
	assert_string_equal(on.path, scene->link + whole - told);
	assert_int_equal(on.path[0], '/');
}

static void rename_there(const char *from, const char *to)
{
	char old[512], new[512];

	snprintf(old, sizeof(old), "%s/%s", base, from);
	snprintf(new, sizeof(new), "%s/%s", base, to);
	rename(old, new);
}

static volatile bool stop;

static char short_name[21], long_name[241];

static void *rename_all_the_time(void *unused)
{
	(void)unused;
	while (!stop) {
		rename_there(short_name, long_name);
		rename_there(long_name, short_name);
	}
	return NULL;
}

static int open_renamed(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/file", short_name);
	return open_at(path);
}

/* A path is one that the file had, or there is none. */
static void renames_tear_no_path(void **state)
{
	char shorter[512], longer[512];
	size_t seen = 0, torn = 0;
	struct seen_look l;
	pthread_t thread;

	memset(short_name, 's', sizeof(short_name) - 1);
	memset(long_name, 'l', sizeof(long_name) - 1);
	snprintf(shorter, sizeof(shorter), "%s/%s/file", base, short_name);
	snprintf(longer, sizeof(longer), "%s/%s/file", base, long_name);
	look_at(open_renamed);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, rename_all_the_time, NULL), 0);
	for (int i = 0; i < RENAMES; i++) {
		const struct look_on *on = &l.record.on;

		read_asleep(fixture.h, fixture.pid, &l);
		if (on->path_end == LOOK_PATH_RENAMED) {
			assert_string_equal(on->path, "");
			torn++;
			continue;
		}
		assert_int_equal(on->path_end, LOOK_PATH_WHOLE);
		assert_true(!strcmp(on->path, shorter) || !strcmp(on->path, longer));
		seen++;
	}
	stop = true;
	pthread_join(thread, NULL);
	print_message("%zu paths, %zu renamed meanwhile\n", seen, torn);
	assert_true(seen > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_paths_are_cut),
		cmocka_unit_test(deep_paths_are_cut),
		cmocka_unit_test(renames_tear_no_path),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
