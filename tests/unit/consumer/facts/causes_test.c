/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/facts/causes.h"
#include "tests/unit/consumer/facts/facts_testing.h"

static char text[CAUSES_TEXT_BYTES];

static void says(const struct causes_case *c, const char *sentence)
{
	enum cause_id id;

	memset(text, 0, sizeof(text));
	if (!sentence) {
		if (causes_find(c, &id, text))
			fail_msg("%s", text);
		return;
	}
	assert_true(causes_find(c, &id, text));
	assert_string_equal(text, sentence);
}

/* The onset takes 1.5 s, during 2 s. */
static void read_all(struct facts_phases *p, enum facts_file file, const char *begin,
		     const char *trigger, const char *end)
{
	facts_testing_read(p, FACTS_BEGIN, 5000, file, begin);
	facts_testing_read(p, FACTS_TRIGGER, 6500, file, trigger);
	facts_testing_read(p, FACTS_END, 8500, file, end);
}

static void add_quota(struct facts_phases *p, const char *throttled)
{
	read_all(p, FACTS_FILE_V2_CPU_STAT, "throttled_usec 100\n", "throttled_usec 370100\n",
		 throttled);
	facts_testing_read(p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_MAX, "40000 100000\n");
}

static void add_memory(struct facts_phases *p)
{
	read_all(p, FACTS_FILE_V2_MEMORY_EVENTS, "max 0\n", "max 12\n", "max 312\n");
	read_all(p, FACTS_FILE_V2_MEMORY_STAT, "workingset_refault_file 0\n",
		 "workingset_refault_file 210\n", "workingset_refault_file 4210\n");
	facts_testing_read(p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_MEMORY_MAX, "67108864\n");
}

static void add_disk(struct facts_phases *p, const char *trigger, const char *end)
{
	read_all(p, FACTS_FILE_V2_IO_STAT, "7:0 rbytes=0\n", trigger, end);
}

static void test_cpu_quota(void **state)
{
	struct facts_phases p = {};
	struct causes_case c = { .facts = &p, .trigger = CAUSES_CPU };
	char above[] = "/a.slice";

	add_quota(&p, "throttled_usec 800100\n");
	says(&c, "CPU quota of 40 % used up: 0.80 s throttled in 3.5 s");
	p.place.source[FACTS_CPU].above = true;
	p.place.source[FACTS_CPU].path = above;
	says(&c, "CPU quota of 40 % of /a.slice used up: 0.80 s throttled in 3.5 s");
	p.place.source[FACTS_CPU].above = false;
	c.trigger = CAUSES_OTHER;
	says(&c, "CPU quota of 40 % used up: 0.80 s throttled in 3.5 s");
	c.trigger = CAUSES_IO;
	says(&c, NULL);
	c.trigger = CAUSES_CPU;
	facts_testing_set(&p.at[FACTS_END], FACT_CPU_THROTTLED_TIME, 5640100);
	says(&c, "CPU quota of 40 % used up: 5.27 s throttled in 2.0 s, summed over CPUs");
	facts_testing_set(&p.at[FACTS_END], FACT_CPU_THROTTLED_TIME, 800100);
	facts_testing_set(&p.at[FACTS_TRIGGER], FACT_CPU_QUOTA, 12500);
	says(&c, "CPU quota of 12.5 % used up: 0.80 s throttled in 3.5 s");
	/* The kernel throttles by a quota only: it was lifted before the trigger. */
	facts_testing_set(&p.at[FACTS_TRIGGER], FACT_CPU_QUOTA, FACTS_NO_LIMIT);
	says(&c, "CPU quota that is gone used up: 0.80 s throttled in 3.5 s");
	facts_testing_set(&p.at[FACTS_END], FACT_CPU_THROTTLED_TIME, 100);
	says(&c, "CPU quota that is gone used up: 0.37 s throttled in 3.5 s");
	facts_testing_set(&p.at[FACTS_TRIGGER], FACT_CPU_THROTTLED_TIME, 100);
	says(&c, NULL);
}

/* The limit is named by its value at the trigger, with its later change. */
static void test_quota_that_changes(void **state)
{
	struct facts_phases p = {};
	struct causes_case c = { .facts = &p, .trigger = CAUSES_CPU };

	add_quota(&p, "throttled_usec 800100\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_CPU_MAX, "max 100000\n");
	says(&c, "CPU quota of 40 % used up: 0.80 s throttled in 3.5 s; it was lifted during the "
		 "capture");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_CPU_MAX, "150000 100000\n");
	says(&c, "CPU quota of 40 % used up: 0.80 s throttled in 3.5 s; it was changed during the "
		 "capture");
	/* The same quota of longer periods. */
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_CPU_MAX, "80000 200000\n");
	says(&c, "CPU quota of 40 % used up: 0.80 s throttled in 3.5 s");
	facts_testing_set(&p.at[FACTS_TRIGGER], FACT_CPU_QUOTA, FACTS_NO_LIMIT);
	says(&c, "CPU quota of 40 % used up: 0.80 s throttled in 3.5 s; it was set during the "
		 "capture");
	/* Its cgroup was removed 0.5 s after the trigger. */
	add_quota(&p, "throttled_usec 800100\n");
	p.until_ns[FACTS_CPU] = 7000 * NSEC_PER_MSEC;
	says(&c, "CPU quota of 40 % used up: 0.43 s throttled in 0.5 s; its cgroup was removed "
		 "during the capture");
	/* At once: the onset has the evidence. */
	p.until_ns[FACTS_CPU] = 6500 * NSEC_PER_MSEC;
	says(&c, "CPU quota of 40 % used up: 0.37 s throttled in 1.5 s; its cgroup was removed "
		 "during the capture");
}

/* A quota that was used up for a moment is no cause. */
static void test_cpu_quota_for_a_moment(void **state)
{
	struct facts_phases p = {};
	const struct causes_case c = { .facts = &p, .trigger = CAUSES_CPU };

	read_all(&p, FACTS_FILE_V2_CPU_STAT, "throttled_usec 0\n", "throttled_usec 76000\n",
		 "throttled_usec 174000\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_MAX, "40000 100000\n");
	says(&c, NULL);
	facts_testing_set(&p.at[FACTS_END], FACT_CPU_THROTTLED_TIME, 176000);
	says(&c, "CPU quota of 40 % used up: 0.18 s throttled in 3.5 s");
}

/* A long onset, with mostly calm time, does not dilute the capture's counts. */
static void test_cpu_quota_after_a_long_onset(void **state)
{
	struct facts_phases p = {};
	const struct causes_case c = { .facts = &p, .trigger = CAUSES_CPU };

	facts_testing_read(&p, FACTS_BEGIN, 900, FACTS_FILE_V2_CPU_STAT, "throttled_usec 0\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_STAT,
			   "throttled_usec 60000\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_CPU_STAT, "throttled_usec 1260000\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_MAX, "40000 100000\n");
	says(&c, "CPU quota of 40 % used up: 1.20 s throttled in 2.0 s");
	facts_testing_set(&p.at[FACTS_END], FACT_CPU_THROTTLED_TIME, 165000);
	says(&c, "CPU quota of 40 % used up: 0.10 s throttled in 2.0 s");
}

/* Without a reading before the onset, the time during alone counts. */
static void test_during_alone(void **state)
{
	struct facts_phases p = {};
	const struct causes_case c = { .facts = &p, .trigger = CAUSES_CPU };

	add_quota(&p, "throttled_usec 2370100\n");
	p.has[FACTS_BEGIN] = false;
	says(&c, "CPU quota of 40 % used up: 2.00 s throttled in 2.0 s");
}

/* A host that took a tenth of its guest's CPUs, and no less than others in the guest had. */
static void test_stolen(void **state)
{
	struct facts_phases p = {};
	struct causes_cpus n = { "/batch.slice", 300, 300, 900, 2000, 2, 2 };
	struct causes_case c = { .facts = &p, .cpus = &n, .trigger = CAUSES_CPU };

	read_all(&p, FACTS_FILE_HOST_STAT, "cpu 0 0 0 0 0 0 0 100\n", "cpu 0 0 0 0 0 0 0 110\n",
		 "cpu 0 0 0 0 0 0 0 160\n");
	says(&c, "the host of this virtual machine took 0.50 s of the time of its 2 CPUs in 2.0 s "
		 "(steal)");
	c.trigger = CAUSES_OTHER;
	says(&c, "the host of this virtual machine took 0.50 s of the time of its 2 CPUs in 2.0 s "
		 "(steal)");
	c.trigger = CAUSES_IO;
	says(&c, NULL);
	c.trigger = CAUSES_CPU;
	n.others_ms = n.most_ms = 510;
	says(&c, "/batch.slice had 0.3 of 2 CPUs while this cgroup waited");
	n.others_ms = n.most_ms = 300;
	n.cpus = 4;
	says(&c, NULL);
}

static void test_neighbour(void **state)
{
	struct facts_phases p = {};
	struct causes_cpus n = { "/batch.slice", 3800, 3900, 80, 2000, 2, 2 };
	struct causes_case c = { .facts = &p, .cpus = &n, .trigger = CAUSES_CPU };

	says(&c, "/batch.slice had 1.9 of 2 CPUs while this cgroup waited");
	add_quota(&p, "throttled_usec 2370100\n");
	says(&c, "CPU quota of 40 % used up: 2.00 s throttled in 2.0 s");
	p = (struct facts_phases){};
	c.trigger = CAUSES_IO;
	says(&c, NULL);
	c.facts = NULL;
	c.trigger = CAUSES_CPU;
	says(&c, "/batch.slice had 1.9 of 2 CPUs while this cgroup waited");
	/* Two that want one CPU of a large host; a few of them; none at all. */
	n = (struct causes_cpus){ "/batch.slice", 1000, 1000, 1000, 2000, 1, 64 };
	says(&c, "/batch.slice had 0.5 of the one CPU that this cgroup ran on while it waited");
	n.own_cpus = 4;
	says(&c, "/batch.slice had 0.5 of the 4 CPUs that this cgroup ran on while it waited");
	n.own_cpus = 0;
	says(&c, "/batch.slice had 0.5 of 64 CPUs while this cgroup waited");
	/* Many small ones. */
	n = (struct causes_cpus){ "/a", 900, 3000, 900, 2000, 2, 2 };
	says(&c, "other cgroups had 1.5 of 2 CPUs while this cgroup waited, /a 0.5 of them");
	/* Too little to block a thread, or less than half of the cgroup's own. */
	n = (struct causes_cpus){ "/a", 499, 499, 10, 2000, 2, 2 };
	says(&c, NULL);
	n = (struct causes_cpus){ "/a", 700, 700, 1401, 2000, 2, 2 };
	says(&c, NULL);
	c.cpus = NULL;
	says(&c, NULL);
}

static void test_own_demand(void **state)
{
	struct causes_cpus n = { "/a", 10, 10, 3800, 2000, 2, 2 };
	struct causes_case c = { .cpus = &n, .trigger = CAUSES_CPU };

	says(&c, "this cgroup had 1.9 of 2 CPUs itself, and wanted more");
	n.own_ms = 3199;
	says(&c, NULL);
	n.own_ms = 3800;
	c.trigger = CAUSES_MEMORY;
	says(&c, NULL);
}

static void test_memory_limit(void **state)
{
	struct facts_phases p = {};
	struct causes_case c = { .facts = &p, .trigger = CAUSES_MEMORY, .stalled_ms = 1240 };

	add_memory(&p);
	says(&c, "memory limit of 64 MiB reached 312 times: 4,210 pages read back, 1.2 s stalled");
	c.trigger = CAUSES_OTHER;
	c.stalled_ms = 0;
	says(&c, "memory limit of 64 MiB reached 312 times: 4,210 pages read back");
	c.trigger = CAUSES_CPU;
	says(&c, NULL);
	/* It is memory.high that holds the cgroup back. */
	c.trigger = CAUSES_MEMORY;
	facts_testing_set(&p.at[FACTS_TRIGGER], FACT_MEMORY_MAX, FACTS_NO_LIMIT);
	says(&c, NULL);
	read_all(&p, FACTS_FILE_V2_MEMORY_EVENTS, "high 0\nmax 0\n", "high 10\nmax 0\n",
		 "high 20\nmax 0\n");
	facts_testing_set(&p.at[FACTS_TRIGGER], FACT_MEMORY_HIGH, 1 << 20);
	says(&c, "memory limit of 1 MiB reached 20 times: 4,210 pages read back");
	facts_testing_set(&p.at[FACTS_END], FACT_MEMORY_EVENTS_HIGH, 19);
	says(&c, NULL);
}

static void test_pids_limit(void **state)
{
	struct facts_phases p = {};
	struct causes_case c = { .facts = &p, .trigger = CAUSES_OTHER };

	read_all(&p, FACTS_FILE_V2_PIDS_EVENTS, "max 3\n", "max 3\n", "max 7\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_PIDS_MAX, "24\n");
	says(&c,
	     "limit of 24 for processes and threads (pids.max) reached: 4 forks refused in 3.5 s");
	c.trigger = CAUSES_IO;
	says(&c,
	     "limit of 24 for processes and threads (pids.max) reached: 4 forks refused in 3.5 s");
	facts_testing_set(&p.at[FACTS_TRIGGER], FACT_PIDS_MAX, FACTS_NO_LIMIT);
	says(&c,
	     "limit of a cgroup above for processes and threads (pids.max) reached: 4 forks refused "
	     "in 3.5 s");
	/* None was refused since the onset. */
	facts_testing_set(&p.at[FACTS_END], FACT_PIDS_EVENTS_MAX, 3);
	says(&c, NULL);
}

/* It is the first cause for a request, and the last one for pressure. */
static void test_files_limit(void **state)
{
	struct facts_phases p = {};
	struct causes_case c = { .facts = &p, .trigger = CAUSES_OTHER };

	read_all(&p, FACTS_FILE_V2_PIDS_EVENTS, "max 3\n", "max 3\n", "max 7\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_PIDS_MAX, "24\n");
	facts_testing_set(&p.at[FACTS_END], FACT_FILES_PID, 71);
	facts_testing_set(&p.at[FACTS_END], FACT_FILES_OPEN, 20000);
	facts_testing_set(&p.at[FACTS_END], FACT_FILES_MAX, 20000);
	strcpy(p.at[FACTS_END].files_comm, "haproxy");
	says(&c, "all 20,000 descriptors of haproxy (process 71) are open (its limit, "
		 "RLIMIT_NOFILE): it can open and accept no more");
	c.trigger = CAUSES_CPU;
	says(&c,
	     "limit of 24 for processes and threads (pids.max) reached: 4 forks refused in 3.5 s");
	c.trigger = CAUSES_OTHER;
	facts_testing_set(&p.at[FACTS_END], FACT_FILES_OPEN, 19999);
	says(&c,
	     "limit of 24 for processes and threads (pids.max) reached: 4 forks refused in 3.5 s");
}

static void test_limits_that_change(void **state)
{
	struct facts_phases p = {};
	struct causes_case c = { .facts = &p, .trigger = CAUSES_MEMORY };

	add_memory(&p);
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_MEMORY_MAX, "max\n");
	says(&c, "memory limit of 64 MiB reached 312 times: 4,210 pages read back; it was lifted "
		 "during the capture");
	p.until_ns[FACTS_MEMORY] = 8000 * NSEC_PER_MSEC;
	says(&c, "memory limit of 64 MiB reached 312 times: 4,210 pages read back; its cgroup was "
		 "removed during the capture");
	p = (struct facts_phases){};
	c.trigger = CAUSES_IO;
	add_disk(&p, "7:0 rbytes=1048576 rios=10\n", "7:0 rbytes=3145728 rios=30\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_IO_MAX,
			   "7:0 rbps=1048576 wbps=max riops=max wiops=max\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_IO_MAX, "");
	says(&c, "disk limit of 1.0 MiB/s (reads) of 7:0 used up: 2.0 MiB read in 2.0 s; it was "
		 "lifted during the capture");
}

/* Pages that are read back make a cgroup wait for the disk: the memory limit is the cause. */
static void test_memory_limit_of_io(void **state)
{
	struct facts_phases p = {};
	const struct causes_case c = { .facts = &p, .trigger = CAUSES_IO, .stalled_ms = 1200 };

	add_memory(&p);
	add_disk(&p, "7:0 rbytes=860160 rios=210\n", "7:0 rbytes=17244160 rios=4210\n");
	says(&c, "memory limit of 64 MiB reached 312 times: 4,210 pages read back, 1.2 s stalled");
	add_disk(&p, "7:0 rbytes=860160 rios=210\n", "7:0 rbytes=172441600 rios=4210\n");
	says(&c, "7:0 read 164.5 MiB in 4,210 requests while this cgroup waited 1.2 s");
}

static void test_disk_limit(void **state)
{
	const char devices[] = "7 0 1024 loop0\n";
	char mounts[] = "1 2 7:0 / /mnt rw - ext4 /dev/loop0 rw\n";
	struct facts_disk loop = {};
	struct facts_disks names = { .items = &loop, .mounts = mounts };
	struct facts_phases p = {};
	const struct causes_case c = {
		.facts = &p, .disks = &names, .trigger = CAUSES_IO, .stalled_ms = 3300
	};

	assert_int_equal(facts_devices_parse(&names.devices, devices, strlen(devices)), 0);
	add_disk(&p, "7:0 rbytes=1048576 rios=10\n", "7:0 rbytes=3145728 rios=30\n");
	says(&c, "loop0 at /mnt read 3.0 MiB in 30 requests while this cgroup waited 3.3 s");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_IO_MAX,
			   "7:0 rbps=1048576 wbps=max riops=max wiops=max\n");
	says(&c, "disk limit of 1.0 MiB/s (reads) of loop0 at /mnt used up: 2.0 MiB read in 2.0 s");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_IO_MAX,
			   "7:0 rbps=4096 wbps=max riops=max wiops=max\n");
	says(&c, "disk limit of 4.0 KiB/s (reads) of loop0 at /mnt used up: 2.0 MiB read in 2.0 s");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_IO_MAX,
			   "7:0 rbps=2097152 wbps=max riops=max wiops=max\n");
	says(&c, "loop0 at /mnt read 3.0 MiB in 30 requests while this cgroup waited 3.3 s");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_IO_MAX,
			   "7:0 rbps=max wbps=max riops=10 wiops=max\n");
	says(&c,
	     "disk limit of 10 requests/s (reads) of loop0 at /mnt used up: 20 requests in 2.0 s");
	facts_devices_done(&names.devices);
}

static void test_disk(void **state)
{
	struct facts_phases p = {};
	struct causes_case c = { .facts = &p, .trigger = CAUSES_IO, .stalled_ms = 3300 };

	add_disk(&p, "7:0 wbytes=1048576 wios=10 rios=9\n",
		 "7:0 wbytes=4299161 wios=212 rios=99 rbytes=9\n");
	says(&c, "7:0 wrote 4.1 MiB in 212 requests while this cgroup waited 3.3 s");
	c.trigger = CAUSES_OTHER;
	says(&c, NULL);
	c.trigger = CAUSES_IO;
	add_disk(&p, "7:0 wios=0 rios=0\n", "7:0 wios=19 rios=3\n");
	says(&c, NULL);
}

UNIT_TESTS(causes)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_quota),
		cmocka_unit_test(test_quota_that_changes),
		cmocka_unit_test(test_limits_that_change),
		cmocka_unit_test(test_cpu_quota_for_a_moment),
		cmocka_unit_test(test_cpu_quota_after_a_long_onset),
		cmocka_unit_test(test_during_alone),
		cmocka_unit_test(test_stolen),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_own_demand),
		cmocka_unit_test(test_memory_limit),
		cmocka_unit_test(test_pids_limit),
		cmocka_unit_test(test_files_limit),
		cmocka_unit_test(test_memory_limit_of_io),
		cmocka_unit_test(test_disk_limit),
		cmocka_unit_test(test_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
