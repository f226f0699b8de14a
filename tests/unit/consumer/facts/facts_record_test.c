/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/cgroups_testing.h"

#include "consumer/facts/facts_record.h"

static struct facts_reader reader;
static struct facts_place here;

static int setup_record(void **state)
{
	int r = setup(state);

	reader = (struct facts_reader){ .cgroups = &cgroups };
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		reader.where[i] = FACTS_V2;
		reader.v1[i].mount_fd = -1;
	}
	make("/api");
	put_file("/api/cpu.stat", "usage_usec 7000\n");
	return r < 0 ? r : facts_reader_place(&reader, "/api", &here);
}

static int teardown_record(void **state)
{
	facts_place_done(&here);
	return teardown(state);
}

static void add(struct facts_record *h, uint64_t time_ns)
{
	facts_record_add(h, &here, &(struct facts){ .time_ns = time_ns });
}

static void test_points(void **state)
{
	struct facts_record h = {};

	assert_null(facts_record_until(&h, 99));
	assert_null(facts_record_from(&h, 0));
	for (uint64_t t = 10; t <= 10 * (FACTS_POINTS + 1); t += 10)
		add(&h, t);
	/* The first was pushed out. */
	assert_int_equal(facts_record_from(&h, 0)->time_ns, 20);
	assert_int_equal(facts_record_from(&h, 21)->time_ns, 30);
	assert_int_equal(facts_record_until(&h, 35)->time_ns, 30);
	assert_null(facts_record_until(&h, 19));
	assert_null(facts_record_from(&h, 10 * (FACTS_POINTS + 1) + 1));
	facts_record_done(&h);
}

static void test_read(void **state)
{
	struct facts_record h = {};
	uint64_t value;

	assert_true(facts_record_wants(&h, 5));
	facts_record_read(&h, &reader, "/api", FACTS_WHOLE, 5);
	assert_false(facts_record_wants(&h, 4 + FACTS_APART_NS));
	assert_true(facts_record_wants(&h, 5 + FACTS_APART_NS));
	assert_true(facts_get(facts_record_from(&h, 0), FACT_CPU_USAGE, &value));
	assert_int_equal(value, 7000);
	facts_record_done(&h);
	assert_null(facts_record_from(&h, 0));
}

/* Readings of another v1 cgroup cannot be compared with these. */
static void test_move(void **state)
{
	struct facts_record h = {};

	add(&h, 10);
	add(&h, 20);
	here.source[FACTS_IO].path[1] = 'b';
	add(&h, 30);
	assert_int_equal(facts_record_from(&h, 0)->time_ns, 30);
	assert_int_equal(h.count, 1);
	facts_record_done(&h);
}

UNIT_TESTS(facts_record)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_points, setup_record, teardown_record),
		cmocka_unit_test_setup_teardown(test_read, setup_record, teardown_record),
		cmocka_unit_test_setup_teardown(test_move, setup_record, teardown_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
