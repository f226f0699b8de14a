/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/cgroups_testing.h"

#include "consumer/facts/facts_phases.h"
#include "shared/tools/clock.h"

static struct facts_reader reader;
static struct facts_record record;

static int setup_phases(void **state)
{
	int r = setup(state);

	reader = (struct facts_reader){ .cgroups = &cgroups };
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++) {
		reader.where[i] = FACTS_V2;
		reader.v1[i].mount_fd = -1;
	}
	make("/api");
	put_file("/api/cpu.stat", "nr_periods 100\nnr_throttled 50\n");
	return r;
}

static int teardown_phases(void **state)
{
	facts_record_done(&record);
	return teardown(state);
}

/* A reading from `ago_s` seconds ago. */
static void add(uint64_t ago_s, uint64_t throttled)
{
	struct facts f = { .time_ns = clock_mono_ns() - ago_s * NSEC_PER_SEC };
	struct facts_place place;

	f.files = 1ULL << FACTS_FILE_V2_CPU_STAT;
	f.value[FACT_CPU_THROTTLED] = throttled;
	f.has = 1ULL << FACT_CPU_THROTTLED;
	assert_int_equal(facts_reader_place(&reader, "/api", &place), 0);
	facts_record_add(&record, &place, &f);
	facts_place_done(&place);
}

static struct facts_phases *begin(uint64_t since_s, uint64_t onset_s)
{
	uint64_t now_ns = clock_mono_ns();
	struct facts_phases *f =
		facts_phases_new(&reader, "/api", &record, now_ns - since_s * NSEC_PER_SEC,
				 now_ns - onset_s * NSEC_PER_SEC);

	assert_non_null(f);
	return f;
}

static void is_grown(const struct facts_phases *f, enum facts_phase phase, uint64_t seconds,
		     uint64_t throttled)
{
	uint64_t value;

	assert_in_range(facts_phases_ms(f, phase), seconds * 1000, seconds * 1000 + 900);
	assert_true(facts_phases_get(f, phase, FACT_CPU_THROTTLED, &value));
	assert_int_equal(value, throttled);
}

static void is_absent(const struct facts_phases *f, enum facts_phase phase)
{
	uint64_t value;

	assert_int_equal(facts_phases_ms(f, phase), 0);
	assert_non_null(f->why[phase]);
	assert_false(facts_phases_get(f, phase, FACT_CPU_THROTTLED, &value));
}

static void test_all_phases(void **state)
{
	struct facts_phases *f;
	uint64_t value, ms;

	add(13, 1);
	add(8, 3);
	add(3, 10);
	f = begin(30, 2);
	is_grown(f, FACTS_BEFORE, 10, 9);
	is_grown(f, FACTS_ONSET, 3, 40);
	put_file("/api/cpu.stat", "nr_periods 120\nnr_throttled 70\n");
	usleep(2000);
	facts_phases_end(f, &reader, "/api");
	assert_true(facts_phases_get(f, FACTS_DURING, FACT_CPU_THROTTLED, &value));
	assert_int_equal(value, 20);
	assert_true(facts_phases_stall(f, FACT_CPU_THROTTLED, &value, &ms));
	assert_int_equal(value, 60);
	assert_int_equal(ms, facts_phases_ms(f, FACTS_ONSET) + facts_phases_ms(f, FACTS_DURING));
	/* Of what was not read in a phase nothing is said; 0 would be a lie. */
	assert_false(facts_phases_get(f, FACTS_BEFORE, FACT_CPU_PERIODS, &value));
	assert_true(facts_phases_get(f, FACTS_DURING, FACT_CPU_PERIODS, &value));
	assert_int_equal(value, 20);
	assert_false(facts_phases_get(f, FACTS_DURING, FACT_MEMORY_PGSCAN, &value));
	facts_phases_free(f);
}

/* No reading is older than the onset: it begins at the first one in it. */
static void test_late_onset(void **state)
{
	struct facts_phases *f;

	add(1, 10);
	f = begin(30, 2);
	is_absent(f, FACTS_BEFORE);
	is_grown(f, FACTS_ONSET, 1, 40);
	facts_phases_free(f);
}

/* Readings of the session before are not calm. */
static void test_since(void **state)
{
	struct facts_phases *f;

	add(20, 1);
	add(8, 3);
	add(5, 4);
	f = begin(9, 2);
	is_grown(f, FACTS_BEFORE, 3, 1);
	is_grown(f, FACTS_ONSET, 5, 46);
	facts_phases_free(f);
}

/* Where many cgroups are watched a reading may be minutes old: then it tells nothing of an onset.
 */
static void test_old_reading(void **state)
{
	struct facts_phases *f;

	add(200, 1);
	add(100, 3);
	f = begin(300, 2);
	is_absent(f, FACTS_BEFORE);
	is_absent(f, FACTS_ONSET);
	facts_phases_free(f);
}

static void test_nothing_before(void **state)
{
	struct facts_phases *f = begin(30, 2);
	uint64_t value, ms;

	is_absent(f, FACTS_BEFORE);
	is_absent(f, FACTS_ONSET);
	assert_false(facts_phases_stall(f, FACT_CPU_THROTTLED, &value, &ms));
	facts_phases_free(f);
	facts_phases_free(NULL);
}

/* A request measured nothing: there is calm time up to it. */
static void test_no_onset(void **state)
{
	struct facts_phases *f;

	add(3, 10);
	f = facts_phases_new(&reader, "/api", &record, 0, UINT64_MAX);
	is_grown(f, FACTS_BEFORE, 3, 40);
	is_absent(f, FACTS_ONSET);
	facts_phases_free(f);
}

UNIT_TESTS(facts_phases)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_phases, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_late_onset, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_since, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_old_reading, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_nothing_before, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_no_onset, setup_phases, teardown_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
