/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/cgroups_testing.h"

#include <fcntl.h>

#include "consumer/facts/facts_place.h"

static const enum facts_where hybrid[FACTS_SOURCE_COUNT_] = { FACTS_V1, FACTS_V1, FACTS_V1,
							      FACTS_V1, FACTS_HOST_WIDE };
static const enum facts_where unified[FACTS_SOURCE_COUNT_] = { FACTS_V2, FACTS_V2, FACTS_V2,
							       FACTS_V2, FACTS_HOST_WIDE };

static bool parse(const char *text, const char *controller, char *path, size_t space)
{
	return facts_place_parse(text, strlen(text), controller, path, space);
}

static void test_parse(void **state)
{
	static const char text[] = "9:name=systemd:/x\n8:pids:/p\n4:memory:/a/b:c\n"
				   "2:cpu,cpuacct:/both\n1:blkio:relative\n0::/v2\n";
	char path[16] = "old";

	assert_true(parse(text, "memory", path, sizeof(path)));
	assert_string_equal(path, "/a/b:c");
	assert_true(parse(text, "cpu", path, sizeof(path)));
	assert_string_equal(path, "/both");
	strcpy(path, "old");
	assert_false(parse(text, "cpuse", path, sizeof(path)));
	assert_false(parse(text, "blkio", path, sizeof(path)));
	assert_false(parse(text, "memory", path, 6));
	assert_false(parse("4:memory:/cut", "memory", path, sizeof(path)));
	assert_false(parse("4:memory:/../other\n", "memory", path, sizeof(path)));
	assert_false(parse("4:memory:/a/..\n", "memory", path, sizeof(path)));
	assert_false(parse("", "memory", path, sizeof(path)));
	assert_string_equal(path, "old");
}

/* In cgroup2 the place is the cgroup itself, whatever processes it has. */
static void test_unified(void **state)
{
	struct facts_place place, copy;

	assert_int_equal(facts_place_find(&cgroups, "/api", unified, NULL, NULL, &place), 0);
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		assert_int_equal(place.source[i].where, unified[i]);
		assert_string_equal(place.source[i].path, "/api");
		assert_int_equal(place.source[i].asked, 0);
	}
	assert_int_equal(facts_place_copy(&place, &copy), 0);
	assert_true(facts_place_same(&place, &copy));
	copy.source[FACTS_IO].path[1] = 'b';
	assert_false(facts_place_same(&place, &copy));
	facts_place_done(&copy);
	assert_false(facts_place_same(&place, &copy));
	facts_place_done(&place);
}

/* On a hybrid host it comes from /proc/PID/cgroup of the processes. */
static void test_hybrid(void **state)
{
	struct facts_place place;
	char text[64], path[4096], groups[8192];
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, groups, sizeof(groups));

	close(fd);
	make("/api");
	snprintf(text, sizeof(text), "%d\n%d\n4194305\nx\n", getpid(), getpid());
	put_file("/api/cgroup.procs", text);
	assert_int_equal(facts_place_find(&cgroups, "/api", hybrid, NULL, NULL, &place), 0);
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		const struct facts_place_source *s = &place.source[i];

		assert_int_equal(s->where, hybrid[i]);
		if (s->where != FACTS_V1)
			continue;
		if (!facts_place_parse(groups, (size_t)n,
				       facts_source_controller((enum facts_source)i), path,
				       sizeof(path))) {
			assert_null(s->path);
			continue;
		}
		assert_string_equal(s->path, path);
		assert_int_equal(s->asked, 2);
		assert_int_equal(s->inside, 2);
	}
	facts_place_done(&place);
	/* No process is there any more. */
	put_file("/api/cgroup.procs", "");
	assert_int_equal(facts_place_find(&cgroups, "/api", hybrid, NULL, NULL, &place), 0);
	assert_null(place.source[FACTS_CPU].path);
	assert_int_equal(place.source[FACTS_CPU].asked, 0);
	facts_place_done(&place);
}

static size_t list_self(void *context, uint32_t pids[FACTS_PLACE_PIDS])
{
	pids[0] = *(const uint32_t *)context;
	return 1;
}

/* Of the cgroup2 root's processes those count that match a rule, not whatever else is there. */
static void test_root(void **state)
{
	uint32_t self = (uint32_t)getpid();
	struct facts_place place;

	put_file("/cgroup.procs", "1\n2\n");
	assert_int_equal(facts_place_find(&cgroups, "/", hybrid, NULL, NULL, &place), 0);
	assert_int_equal(place.source[FACTS_CPU].asked, 0);
	facts_place_done(&place);
	assert_int_equal(facts_place_find(&cgroups, "/", hybrid, list_self, &self, &place), 0);
	assert_true(place.source[FACTS_CPU].asked <= 1);
	assert_int_equal(!place.source[FACTS_CPU].path, place.source[FACTS_CPU].asked == 0);
	facts_place_done(&place);
}

UNIT_TESTS(facts_place)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test_setup_teardown(test_unified, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hybrid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_root, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
