/* SPDX-License-Identifier: BSD-2-Clause */
/* Folders stand for the hierarchies: cgroup2, and with /v1 a controller's own. */
#include "tests/unit/consumer/testing/cgroups_testing.h"

#include <errno.h>
#include <fcntl.h>

#include "consumer/facts/facts_reader.h"

static struct facts_reader reader;

static int setup_reader(void **state)
{
	int r = setup(state);

	reader = (struct facts_reader){ .cgroups = &cgroups };
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		reader.where[i] = FACTS_V2;
		reader.v1[i].mount_fd = -1;
	}
	return r;
}

static int teardown_reader(void **state)
{
	facts_reader_done(&reader);
	return teardown(state);
}

static uint64_t get(const struct facts *f, enum fact fact)
{
	uint64_t value;

	assert_true(facts_get(f, fact, &value));
	return value;
}

static void test_unified(void **state)
{
	struct facts_place place;
	struct facts f;
	uint64_t value;

	make("/api");
	put_file("/api/cpu.stat", "usage_usec 7000\nnr_throttled 3\n");
	put_file("/api/cpu.max", "40000 100000\n");
	put_file("/api/memory.events", "max 5\n");
	put_file("/api/memory.stat", "pgscan 9\n");
	put_file("/api/io.stat", "8:0 rbytes=1 rios=2\n");
	assert_int_equal(facts_reader_place(&reader, "/api", &place), 0);
	facts_reader_read(&reader, "/api", &place, FACTS_CHEAP, &f);
	assert_true(f.time_ns > 0);
	assert_int_equal(get(&f, FACT_CPU_USAGE), 7000);
	assert_int_equal(get(&f, FACT_CPU_THROTTLED), 3);
	assert_int_equal(get(&f, FACT_MEMORY_EVENTS_MAX), 5);
	assert_int_equal(f.n_devices, 1);
	/* What is dear, and the limits, are left out. */
	assert_false(facts_get(&f, FACT_MEMORY_PGSCAN, &value));
	assert_false(facts_get(&f, FACT_CPU_QUOTA, &value));
	assert_int_equal(f.error[FACTS_FILE_V2_MEMORY_STAT], 0);
	facts_reader_read(&reader, "/api", &place, FACTS_WHOLE, &f);
	assert_int_equal(get(&f, FACT_MEMORY_PGSCAN), 9);
	assert_false(facts_get(&f, FACT_CPU_QUOTA, &value));
	/* What is not there is absent, with its reason; a v1 file is not asked for. */
	assert_int_equal(f.error[FACTS_FILE_V2_MEMORY_CURRENT], -ENOENT);
	assert_int_equal(f.error[FACTS_FILE_V1_MEMORY_USAGE], 0);
	facts_reader_read(&reader, "/api", &place, FACTS_LIMITS, &f);
	assert_int_equal(get(&f, FACT_CPU_QUOTA), 40000);
	facts_place_done(&place);
}

/* A controller in a v1 hierarchy; the CPU time is still that of the watch's own cgroup. */
static void test_hybrid(void **state)
{
	struct facts_place place = {};
	char v1[80];
	struct facts f;

	make("/api");
	make("/v1");
	make("/v1/batch");
	put_file("/api/cpu.stat", "usage_usec 7000\n");
	put_file("/v1/batch/cpu.stat", "nr_throttled 4\nthrottled_time 5000\n");
	snprintf(v1, sizeof(v1), "%s/v1", mount);
	reader.where[FACTS_CPU] = FACTS_V1;
	reader.v1[FACTS_CPU].mount_fd = open(v1, O_PATH | O_DIRECTORY | O_CLOEXEC);
	place.source[FACTS_CPU] = (struct facts_place_source){ FACTS_V1, strdup("/batch"), 1, 1 };
	facts_reader_read(&reader, "/api", &place, FACTS_LIMITS, &f);
	assert_int_equal(get(&f, FACT_CPU_USAGE), 7000);
	assert_int_equal(get(&f, FACT_CPU_THROTTLED), 4);
	assert_int_equal(get(&f, FACT_CPU_THROTTLED_TIME), 5);
	assert_int_equal(f.error[FACTS_FILE_V1_CPU_QUOTA], -ENOENT);
	assert_int_equal(f.error[FACTS_FILE_V2_CPU_STAT], 0);
	/* The root of a hierarchy counts the whole host. */
	place.source[FACTS_CPU].path[1] = '\0';
	facts_reader_read(&reader, "/api", &place, FACTS_CHEAP, &f);
	assert_int_equal(f.error[FACTS_FILE_V1_CPU_STAT], -EXDEV);
	facts_place_done(&place);
	/* The v1 cgroup of the processes is not known. */
	place.source[FACTS_CPU].where = FACTS_V1;
	facts_reader_read(&reader, "/api", &place, FACTS_CHEAP, &f);
	assert_int_equal(f.error[FACTS_FILE_V1_CPU_STAT], -ESRCH);
}

static void is_at(const struct facts_place *place, enum facts_source source, const char *path)
{
	assert_string_equal(place->source[source].path, path);
	assert_int_equal(place->source[source].above, strcmp(path, "/a.slice/api") != 0);
}

/* The limit of a slice holds for the services below it; a cgroup's own comes first. */
static void test_above(void **state)
{
	struct facts_place place;

	make("/a.slice");
	make("/a.slice/api");
	put_file("/a.slice/cpu.max", "40000 100000\n");
	put_file("/a.slice/memory.high", "max\n");
	put_file("/a.slice/memory.max", "67108864\n");
	put_file("/a.slice/api/cpu.max", "max 100000\n");
	put_file("/a.slice/api/memory.high", "1048576\n");
	put_file("/a.slice/api/memory.swap.max", "0\n");
	assert_int_equal(facts_reader_place(&reader, "/a.slice/api", &place), 0);
	is_at(&place, FACTS_CPU, "/a.slice");
	is_at(&place, FACTS_MEMORY, "/a.slice/api");
	is_at(&place, FACTS_IO, "/a.slice/api");
	is_at(&place, FACTS_PIDS, "/a.slice/api");
	facts_place_done(&place);
	/* A cgroup without swap is not bounded by that: the limit above counts. */
	put_file("/a.slice/api/memory.high", "max\n");
	assert_int_equal(facts_reader_place(&reader, "/a.slice/api", &place), 0);
	is_at(&place, FACTS_MEMORY, "/a.slice");
	facts_place_done(&place);
}

/* What is not of a cgroup is read in /proc. */
static void test_host(void **state)
{
	struct facts_place place;
	struct facts f;

	make("/api");
	assert_int_equal(facts_reader_place(&reader, "/api", &place), 0);
	facts_reader_read(&reader, "/api", &place, FACTS_WHOLE, &f);
	assert_true(get(&f, FACT_HOST_FREE) > 0);
	assert_true(get(&f, FACT_HOST_DIRTY_LIMIT) > 0);
	assert_true(f.has & 1ull << FACT_HOST_STOLEN);
	facts_place_done(&place);
}

/* The cgroup was removed. */
static void test_gone(void **state)
{
	struct facts_place place;
	struct facts f;

	assert_int_equal(facts_reader_place(&reader, "/gone", &place), 0);
	facts_reader_read(&reader, "/gone", &place, FACTS_LIMITS, &f);
	/* The machine is still there. */
	assert_int_equal(f.files, 1ull << FACTS_FILE_HOST_VMSTAT | 1ull << FACTS_FILE_HOST_STAT);
	for (int i = 0; i < FACT_COUNT_; i++)
		if (f.has & 1ull << i)
			assert_int_equal(facts_row((enum fact)i)->source, FACTS_HOST);
	assert_int_equal(f.error[FACTS_FILE_OWN_CPU_STAT], -ENOENT);
	assert_int_equal(f.error[FACTS_FILE_V2_CPU_STAT], -ENOENT);
	facts_place_done(&place);
}

/* The host's own hierarchies. */
static void test_here(void **state)
{
	struct facts_reader here;

	assert_int_equal(facts_reader_open(&here, &cgroups), 0);
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++)
		assert_int_equal(here.where[i] == FACTS_V1, here.v1[i].mount_fd >= 0);
	facts_reader_done(&here);
	here = (struct facts_reader){};
	facts_reader_done(&here);
}

UNIT_TESTS(facts_reader)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unified, setup_reader, teardown_reader),
		cmocka_unit_test_setup_teardown(test_hybrid, setup_reader, teardown_reader),
		cmocka_unit_test_setup_teardown(test_above, setup_reader, teardown_reader),
		cmocka_unit_test_setup_teardown(test_host, setup_reader, teardown_reader),
		cmocka_unit_test_setup_teardown(test_gone, setup_reader, teardown_reader),
		cmocka_unit_test_setup_teardown(test_here, setup_reader, teardown_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
