/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/cgroups_testing.h"

#include <fcntl.h>

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

	assert_in_range(facts_phases_ms(f, phase, FACTS_CPU), seconds * 1000, seconds * 1000 + 900);
	assert_true(facts_phases_get(f, phase, FACT_CPU_THROTTLED, &value));
	assert_int_equal(value, throttled);
}

static void is_absent(const struct facts_phases *f, enum facts_phase phase)
{
	uint64_t value;

	assert_int_equal(facts_phases_ms(f, phase, FACTS_CPU), 0);
	assert_non_null(f->reasons[phase]);
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
	facts_phases_end(f);
	assert_true(facts_phases_get(f, FACTS_DURING, FACT_CPU_THROTTLED, &value));
	assert_int_equal(value, 20);
	assert_true(facts_phases_stall(f, FACT_CPU_THROTTLED, &value, &ms));
	assert_int_equal(value, 60);
	assert_int_equal(ms, facts_phases_ms(f, FACTS_ONSET, FACTS_CPU) +
				     facts_phases_ms(f, FACTS_DURING, FACTS_CPU));
	/* Values that were not read in a phase are absent; 0 would be a lie. */
	assert_false(facts_phases_get(f, FACTS_BEFORE, FACT_CPU_PERIODS, &value));
	assert_true(facts_phases_get(f, FACTS_DURING, FACT_CPU_PERIODS, &value));
	assert_int_equal(value, 20);
	assert_false(facts_phases_get(f, FACTS_DURING, FACT_MEMORY_PGSCAN, &value));
	facts_phases_free(f);
}

static uint64_t limit(const struct facts_phases *f, enum facts_since since)
{
	enum facts_since is;
	uint64_t pct = facts_phases_limit(f, FACT_CPU_QUOTA, &is);

	assert_int_equal(is, since);
	assert_int_equal(facts_phases_limits_changed(f, FACTS_CPU),
			 since != FACTS_KEPT && since != FACTS_REMOVED);
	return pct / 1000;
}

/* The quota is lifted while the session runs. */
static void test_lifted(void **state)
{
	struct facts_phases *f;

	put_file("/api/cpu.max", "20000 100000\n");
	f = begin(30, 2);
	put_file("/api/cpu.max", "max 100000\n");
	facts_phases_end(f);
	assert_int_equal(limit(f, FACTS_LIFTED), 20);
	assert_true(facts_phases_whole(f));
	facts_phases_free(f);
}

/* Another cgroup of the same path: what was opened at the trigger is read to the end. */
static void test_restarted(void **state)
{
	char from[128], to[128];
	struct facts_phases *f;
	uint64_t value;

	put_file("/api/cpu.max", "20000 100000\n");
	f = begin(30, 2);
	snprintf(from, sizeof(from), "%s/api", mount);
	snprintf(to, sizeof(to), "%s/old", mount);
	assert_int_equal(rename(from, to), 0);
	make("/api");
	put_file("/api/cpu.stat", "nr_periods 1\nnr_throttled 0\n");
	put_file("/api/cpu.max", "150000 100000\n");
	put_file("/old/cpu.stat", "nr_periods 120\nnr_throttled 70\n");
	usleep(2000);
	facts_phases_end(f);
	assert_int_equal(limit(f, FACTS_KEPT), 20);
	assert_true(facts_phases_get(f, FACTS_DURING, FACT_CPU_THROTTLED, &value));
	assert_int_equal(value, 20);
	facts_phases_free(f);
}

/* Has reading fail from now on, as it does in a cgroup that was removed. */
static void remove_files(struct facts_phases *f)
{
	for (int i = 0; i < FACTS_FILE_COUNT_; i++)
		if (f->files.has & 1ULL << i && f->files.fd[i] >= 0 &&
		    facts_file((enum facts_file)i)->source == FACTS_CPU) {
			close(f->files.fd[i]);
			f->files.fd[i] = open(mount, O_PATH | O_CLOEXEC);
		}
}

/* The last reading before the cgroup was removed is its end; the host's goes on. */
static void test_removed(void **state)
{
	uint64_t value, again_ns = clock_mono_ns() + FACTS_AGAIN_NS + NSEC_PER_SEC;
	struct facts_phases *f;

	put_file("/api/cpu.max", "20000 100000\n");
	f = begin(30, 2);
	put_file("/api/cpu.stat", "nr_periods 110\nnr_throttled 60\n");
	usleep(2000);
	facts_phases_step(f, clock_mono_ns());
	assert_false(f->has[FACTS_END]);
	facts_phases_step(f, again_ns);
	assert_true(f->has[FACTS_END] && !facts_phases_gone(f, FACTS_CPU));
	put_file("/api/cpu.stat", "nr_periods 120\nnr_throttled 70\n");
	remove_files(f);
	usleep(5000);
	facts_phases_end(f);
	assert_true(facts_phases_gone(f, FACTS_CPU));
	assert_false(facts_phases_gone(f, FACTS_HOST) || facts_phases_whole(f));
	assert_int_equal(limit(f, FACTS_REMOVED), 20);
	assert_true(facts_phases_get(f, FACTS_DURING, FACT_CPU_THROTTLED, &value));
	assert_int_equal(value, 10);
	assert_true(facts_phases_ms(f, FACTS_DURING, FACTS_CPU) <
		    facts_phases_ms(f, FACTS_DURING, FACTS_HOST));
	facts_phases_free(f);
	/* At once: there is no such phase, and the limit is known. */
	f = begin(30, 2);
	remove_files(f);
	usleep(2000);
	facts_phases_end(f);
	assert_int_equal(facts_phases_ms(f, FACTS_DURING, FACTS_CPU), 0);
	assert_int_equal(limit(f, FACTS_REMOVED), 20);
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

/* Where many cgroups are watched a reading may be minutes old: then it has no onset. */
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
		cmocka_unit_test_setup_teardown(test_lifted, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_restarted, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_removed, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_late_onset, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_since, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_old_reading, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_nothing_before, setup_phases, teardown_phases),
		cmocka_unit_test_setup_teardown(test_no_onset, setup_phases, teardown_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
