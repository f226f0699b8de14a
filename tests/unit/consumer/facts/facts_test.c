/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/facts/facts.h"

static void parse(struct facts *f, enum facts_file file, const char *text)
{
	facts_parse(f, file, text, strlen(text));
}

static uint64_t get(const struct facts *f, enum fact fact)
{
	uint64_t value;

	assert_true(facts_get(f, fact, &value));
	return value;
}

/* The same facts from both hierarchies, in the same units. */
static void test_cpu(void **state)
{
	struct facts v2 = {}, v1 = {};

	parse(&v2, FACTS_FILE_V2_CPU_STAT,
	      "usage_usec 5000000\nuser_usec 1\nsystem_usec 2\nnr_periods 50\nnr_throttled 40\n"
	      "throttled_usec 2370000\nnr_bursts 0\nburst_usec 0\n");
	parse(&v2, FACTS_FILE_OWN_CPU_STAT, "usage_usec 5000000\nuser_usec 1\n");
	parse(&v2, FACTS_FILE_V2_CPU_MAX, "40000 100000\n");
	parse(&v1, FACTS_FILE_V1_CPU_STAT,
	      "nr_periods 50\nnr_throttled 40\nthrottled_time 2370000123\n");
	parse(&v1, FACTS_FILE_V1_CPU_QUOTA, "40000\n");
	parse(&v1, FACTS_FILE_V1_CPU_PERIOD, "100000\n");
	assert_int_equal(get(&v2, FACT_CPU_USAGE), 5000000);
	for (const struct facts *f = &v2; f; f = f == &v2 ? &v1 : NULL) {
		assert_int_equal(get(f, FACT_CPU_PERIODS), 50);
		assert_int_equal(get(f, FACT_CPU_THROTTLED), 40);
		assert_int_equal(get(f, FACT_CPU_THROTTLED_TIME), 2370000);
		assert_int_equal(get(f, FACT_CPU_QUOTA), 40000);
		assert_int_equal(get(f, FACT_CPU_PERIOD), 100000);
	}
}

/* "max", -1 and the largest number of whole pages are no limit; a counter that is large is one. */
static void test_no_limit(void **state)
{
	struct facts f = {};

	parse(&f, FACTS_FILE_V2_CPU_MAX, "max 100000\n");
	assert_true(get(&f, FACT_CPU_QUOTA) == FACTS_NO_LIMIT);
	parse(&f, FACTS_FILE_V1_CPU_QUOTA, "-1\n");
	assert_true(get(&f, FACT_CPU_QUOTA) == FACTS_NO_LIMIT);
	parse(&f, FACTS_FILE_V2_MEMORY_HIGH, "max\n");
	assert_true(get(&f, FACT_MEMORY_HIGH) == FACTS_NO_LIMIT);
	parse(&f, FACTS_FILE_V1_MEMORY_MAX, "9223372036854771712\n");
	assert_true(get(&f, FACT_MEMORY_MAX) == FACTS_NO_LIMIT);
	parse(&f, FACTS_FILE_V2_MEMORY_MAX, "67108864\n");
	assert_int_equal(get(&f, FACT_MEMORY_MAX), 64 << 20);
	parse(&f, FACTS_FILE_V2_MEMORY_EVENTS, "max 4611686018427387905\n");
	assert_true(get(&f, FACT_MEMORY_EVENTS_MAX) == 4611686018427387905ULL);
}

static void test_memory(void **state)
{
	struct facts f = {};
	uint64_t value;

	parse(&f, FACTS_FILE_V2_MEMORY_EVENTS,
	      "low 0\nhigh 3\nmax 312\noom 1\noom_kill 1\noom_group_kill 0\n");
	parse(&f, FACTS_FILE_V2_MEMORY_STAT,
	      "anon 1\nworkingset_refault_anon 10\nworkingset_refault_file 4200\npgscan 9\n"
	      "pgsteal 8\npgscan_direct 7\npgmajfault 6\n");
	assert_int_equal(get(&f, FACT_MEMORY_EVENTS_HIGH), 3);
	assert_int_equal(get(&f, FACT_MEMORY_EVENTS_MAX), 312);
	assert_int_equal(get(&f, FACT_MEMORY_REFAULT_ANON), 10);
	assert_int_equal(get(&f, FACT_MEMORY_REFAULT_FILE), 4200);
	assert_int_equal(get(&f, FACT_MEMORY_PGSCAN), 9);
	assert_int_equal(get(&f, FACT_MEMORY_PGMAJFAULT), 6);
	assert_false(facts_get(&f, FACT_MEMORY_CURRENT, &value));
	f = (struct facts){};
	parse(&f, FACTS_FILE_V1_MEMORY_FAILCNT, "312\n");
	parse(&f, FACTS_FILE_V1_MEMORY_STAT,
	      "pgmajfault 1\nworkingset_refault_file 2\ntotal_workingset_refault_file 4200\n"
	      "total_pgmajfault 6\n");
	parse(&f, FACTS_FILE_V1_MEMORY_OOM, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	assert_int_equal(get(&f, FACT_MEMORY_EVENTS_MAX), 312);
	assert_int_equal(get(&f, FACT_MEMORY_REFAULT_FILE), 4200);
	assert_int_equal(get(&f, FACT_MEMORY_PGMAJFAULT), 6);
	assert_int_equal(get(&f, FACT_MEMORY_EVENTS_OOM_KILL), 2);
	assert_false(facts_get(&f, FACT_MEMORY_PGSCAN, &value));
}

/* Swap has files of its own in cgroup2; v1 bounds memory and swap together. */
static void test_swap(void **state)
{
	struct facts f = {};

	parse(&f, FACTS_FILE_V2_SWAP_CURRENT, "8192\n");
	parse(&f, FACTS_FILE_V2_SWAP_EVENTS, "high 1\nmax 2\nfail 3\n");
	parse(&f, FACTS_FILE_V2_SWAP_MAX, "max\n");
	parse(&f, FACTS_FILE_V2_MEMORY_STAT,
	      "anon 4096\nfile 12288\nfile_mapped 1\nfile_dirty 8192\nfile_writeback 4096\n"
	      "pswpin 7\npswpout 9\n");
	assert_int_equal(get(&f, FACT_MEMORY_SWAP), 8192);
	assert_int_equal(get(&f, FACT_MEMORY_SWAP_HIGH), 1);
	assert_int_equal(get(&f, FACT_MEMORY_SWAP_FULL), 2);
	assert_int_equal(get(&f, FACT_MEMORY_SWAP_FAIL), 3);
	assert_true(get(&f, FACT_MEMORY_SWAP_MAX) == FACTS_NO_LIMIT);
	assert_int_equal(get(&f, FACT_MEMORY_ANON), 4096);
	assert_int_equal(get(&f, FACT_MEMORY_FILE), 12288);
	assert_int_equal(get(&f, FACT_MEMORY_DIRTY), 8192);
	assert_int_equal(get(&f, FACT_MEMORY_WRITEBACK), 4096);
	assert_int_equal(get(&f, FACT_MEMORY_PSWPIN), 7);
	assert_int_equal(get(&f, FACT_MEMORY_PSWPOUT), 9);
	f = (struct facts){};
	parse(&f, FACTS_FILE_V1_MEMORY_STAT,
	      "swap 1\ntotal_cache 12288\ntotal_rss 4096\ntotal_swap 8192\ntotal_dirty 8192\n"
	      "total_writeback 4096\n");
	parse(&f, FACTS_FILE_V1_MEMSW_MAX, "9223372036854771712\n");
	assert_int_equal(get(&f, FACT_MEMORY_SWAP), 8192);
	assert_int_equal(get(&f, FACT_MEMORY_ANON), 4096);
	assert_int_equal(get(&f, FACT_MEMORY_FILE), 12288);
	assert_int_equal(get(&f, FACT_MEMORY_DIRTY), 8192);
	assert_int_equal(get(&f, FACT_MEMORY_WRITEBACK), 4096);
	assert_true(get(&f, FACT_MEMORY_MEMSW_MAX) == FACTS_NO_LIMIT);
}

/* Of the whole machine; keys that begin like others are not mistaken for them. */
static void test_host(void **state)
{
	struct facts f = {};

	parse(&f, FACTS_FILE_HOST_VMSTAT,
	      "nr_free_pages 10\nnr_free_pages_blocks 11\nnr_dirty 2\nnr_writeback 3\n"
	      "nr_dirty_threshold 4\nnr_dirty_background_threshold 5\npswpin 6\npswpout 7\n"
	      "pgscan_direct 8\npgscan_direct_throttle 9\noom_kill 1\n");
	assert_int_equal(get(&f, FACT_HOST_FREE), 10);
	assert_int_equal(get(&f, FACT_HOST_DIRTY), 2);
	assert_int_equal(get(&f, FACT_HOST_DIRTY_LIMIT), 4);
	assert_int_equal(get(&f, FACT_HOST_PSWPIN), 6);
	assert_int_equal(get(&f, FACT_HOST_PGSCAN_DIRECT), 8);
	assert_int_equal(get(&f, FACT_HOST_OOM_KILL), 1);
	/* In ticks of 10 ms; the first line is that of all CPUs. */
	parse(&f, FACTS_FILE_HOST_STAT,
	      "cpu  1 2 3 4 5 6 7 89 10 11\ncpu0 1 2 3 4 5 6 7 44 10 11\nintr 1 2 3\n");
	assert_int_equal(get(&f, FACT_HOST_STOLEN), 890);
	f = (struct facts){};
	parse(&f, FACTS_FILE_HOST_STAT, "cpu  1 2 3 4 5 6 7");
	assert_false(f.has & 1ull << FACT_HOST_STOLEN);
}

static void test_io(void **state)
{
	const struct facts_device *d;
	struct facts f = {};

	parse(&f, FACTS_FILE_V2_IO_STAT,
	      "7:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n8:16 \n254:0 rbytes=9 wios=2\n");
	parse(&f, FACTS_FILE_V2_IO_MAX, "7:0 rbps=1048576 wbps=max riops=100 wiops=max\n");
	assert_int_equal(f.n_devices, 3);
	d = facts_device(&f, 7, 0);
	assert_int_equal(d->count[FACTS_RBYTES], 4096);
	assert_int_equal(d->limit[FACTS_RBYTES], 1 << 20);
	assert_true(d->limit[FACTS_WBYTES] == FACTS_NO_LIMIT);
	assert_int_equal(d->limit[FACTS_RIOS], 100);
	d = facts_device(&f, 254, 0);
	assert_int_equal(d->count[FACTS_WIOS], 2);
	assert_null(facts_device(&f, 254, 1));
	f = (struct facts){};
	parse(&f, FACTS_FILE_V1_IO_BYTES,
	      "7:0 Read 4096\n7:0 Write 8192\n7:0 Sync 1\n7:0 Total 12288\nTotal 12288\n");
	parse(&f, FACTS_FILE_V1_IO_COUNT, "7:0 Read 1\n7:0 Write 2\n");
	parse(&f, FACTS_FILE_V1_IO_RBPS, "7:0 1048576\n");
	assert_int_equal(f.n_devices, 1);
	d = facts_device(&f, 7, 0);
	assert_int_equal(d->count[FACTS_WBYTES], 8192);
	assert_int_equal(d->count[FACTS_RIOS], 1);
	assert_int_equal(d->limit[FACTS_RBYTES], 1 << 20);
	assert_true(d->limit[FACTS_RIOS] == FACTS_NO_LIMIT);
}

/* More devices than there is room for are counted; what is no device is passed over. */
static void test_many_devices(void **state)
{
	struct facts f = {};

	parse(&f, FACTS_FILE_V2_IO_STAT,
	      "8:0 rios=1\n8:16 rios=1\n8:32 rios=1\n8:48 rios=1\n8:64 rios=1\n8:80 rios=1\n"
	      "8:96 rios=1\n8:112 rios=1\nx:1 rios=1\n8: rios=1\n4294967296:0 rios=1\n");
	assert_int_equal(f.n_devices, FACTS_DEVICES);
	assert_int_equal(f.devices_more, 2);
}

static void test_pids(void **state)
{
	struct facts f = {};

	parse(&f, FACTS_FILE_V1_PIDS_CURRENT, "12\n");
	parse(&f, FACTS_FILE_V1_PIDS_EVENTS, "max 3\n");
	parse(&f, FACTS_FILE_V1_PIDS_MAX, "20\n");
	assert_int_equal(get(&f, FACT_PIDS_CURRENT), 12);
	assert_int_equal(get(&f, FACT_PIDS_EVENTS_MAX), 3);
	assert_int_equal(get(&f, FACT_PIDS_MAX), 20);
}

UNIT_TESTS(facts)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu),	     cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_memory),	     cmocka_unit_test(test_swap),
		cmocka_unit_test(test_host),	     cmocka_unit_test(test_io),
		cmocka_unit_test(test_many_devices), cmocka_unit_test(test_pids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
