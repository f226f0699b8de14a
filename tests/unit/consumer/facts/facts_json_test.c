/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/runner/unit.h"

#include "consumer/facts/facts_json.h"
#include "shared/json/jsonw.h"
#include "tests/unit/consumer/facts/facts_testing.h"

static void says(const struct facts_phases *p, enum facts_source source, const char *text)
{
	const char devices[] = "7 0 1024 loop0\n";
	char file[] = "/srv/disk.img", mounts[] = "1 2 7:0 / /mnt rw - ext4 /dev/loop0 rw\n";
	struct facts_disk loop = { .kind = FACTS_DISK_LOOP, .name = file };
	struct facts_disks names = { .items = &loop, .mounts = mounts };
	struct jsonw w;

	assert_int_equal(facts_devices_parse(&names.devices, devices, strlen(devices)), 0);
	jsonw_init(&w, 8191);
	jsonw_object(&w, NULL);
	facts_json_write(p, source, "/api", &names, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_int_equal(w.bytes, strlen(text));
	assert_memory_equal(w.data, text, w.bytes);
	jsonw_done(&w);
	facts_devices_done(&names.devices);
}

static void put_place(struct facts_phases *p, enum facts_where where, const char *path)
{
	for (int i = 0; i < FACTS_SOURCE_COUNT_; i++)
		p->place.source[i] = (struct facts_place_source){ where, (char *)path, 14, 11 };
	if (where == FACTS_V2)
		for (int i = 0; i < FACTS_SOURCE_COUNT_; i++)
			p->place.source[i].asked = p->place.source[i].inside = 0;
}

static void test_cpu(void **state)
{
	static char path[] = "/batch";
	struct facts_phases p = {};

	put_place(&p, FACTS_V1, path);
	facts_testing_read(&p, FACTS_CALM, 1000, FACTS_FILE_V1_CPU_STAT, "nr_throttled 1\n");
	facts_testing_read(&p, FACTS_BEGIN, 5000, FACTS_FILE_V1_CPU_STAT, "nr_throttled 1\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V1_CPU_STAT,
			   "nr_throttled 4\nthrottled_time 0\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V1_CPU_STAT,
			   "nr_throttled 24\nthrottled_time 1999999999\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V1_CPU_QUOTA, "40000\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V1_CPU_PERIOD, "100000\n");
	says(&p, FACTS_CPU,
	     "{\"source\":\"cpu\",\"from\":\"v1\",\"from_cgroup\":\"/batch\","
	     "\"from_reason\":\"11 of 14 processes are in it\","
	     "\"limits\":{\"quota_pct\":40.000,\"period_us\":100000},"
	     "\"phases\":{\"before\":{\"ms\":4000,\"nr_throttled\":0},"
	     "\"onset\":{\"ms\":1500,\"nr_throttled\":3},"
	     "\"during\":{\"ms\":2000,\"nr_throttled\":20,\"throttled_ms\":1999}}}");
}

/* Limits that changed, and a cgroup that was removed 0.5 s after the trigger. */
static void test_changed(void **state)
{
	static char path[] = "/api";
	struct facts_phases p = {};

	put_place(&p, FACTS_V2, path);
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_MAX, "20000 100000\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_CPU_STAT, "nr_periods 5\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_CPU_MAX, "max 100000\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_CPU_STAT, "nr_periods 9\n");
	says(&p, FACTS_CPU,
	     "{\"source\":\"cpu\",\"from\":\"v2\","
	     "\"limits\":{\"quota_pct\":20.000,\"period_us\":100000},"
	     "\"limits_end\":{\"quota_pct\":null,\"period_us\":100000},"
	     "\"phases\":{\"during\":{\"ms\":2000,\"nr_periods\":4}}}");
	p.until_ns[FACTS_CPU] = 7000 * NSEC_PER_MSEC;
	p.at[FACTS_END].error[FACTS_FILE_V2_CPU_STAT] = -ENODEV;
	says(&p, FACTS_CPU,
	     "{\"source\":\"cpu\",\"from\":\"v2\","
	     "\"limits\":{\"quota_pct\":20.000,\"period_us\":100000},"
	     "\"phases\":{\"during\":{\"ms\":500,\"nr_periods\":4}},"
	     "\"missing\":[{\"file\":\"cpu.stat\","
	     "\"reason\":\"the cgroup was removed: its last reading before that is the end\"}]}");
}

/* Those of the machine have no owner. */
static void test_host(void **state)
{
	static char path[] = "/api";
	struct facts_phases p = {};

	put_place(&p, FACTS_HOST_WIDE, path);
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_HOST_VMSTAT, "pswpin 1\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_HOST_VMSTAT,
			   "pswpin 5\nnr_free_pages 7\n");
	says(&p, FACTS_HOST,
	     "{\"source\":\"host\",\"from\":\"host\",\"limits\":{},"
	     "\"phases\":{\"during\":{\"ms\":2000,\"pswpin\":4,\"free_pages\":7}}}");
}

/* Unreadable files are reported, and no phase of them is written. */
static void test_missing(void **state)
{
	static char path[] = "/api";
	struct facts_phases p = { .reasons = { [FACTS_BEFORE] = "too early" } };

	put_place(&p, FACTS_V2, path);
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_PIDS_CURRENT, "3\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_PIDS_CURRENT, "4\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_PIDS_MAX, "max\n");
	p.at[FACTS_END].error[FACTS_FILE_V2_MEMORY_STAT] = -EACCES;
	says(&p, FACTS_MEMORY,
	     "{\"source\":\"memory\",\"from\":\"v2\",\"limits\":{},\"phases\":{},\"missing\":["
	     "{\"file\":\"memory.stat\",\"reason\":\"the agent may not read it\"},"
	     "{\"file\":\"before\",\"reason\":\"too early\"}]}");
	says(&p, FACTS_PIDS,
	     "{\"source\":\"pids\",\"from\":\"v2\",\"limits\":{\"max\":null},"
	     "\"phases\":{\"during\":{\"ms\":2000,\"current\":4}},"
	     "\"missing\":[{\"file\":\"before\",\"reason\":\"too early\"}]}");
}

/* Files that only a session reads have no calm phase. */
static void test_shallow(void **state)
{
	static char path[] = "/api";
	struct facts_phases p = {};

	put_place(&p, FACTS_V2, path);
	facts_testing_read(&p, FACTS_BEGIN, 5000, FACTS_FILE_V2_MEMORY_EVENTS, "max 1\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_MEMORY_EVENTS, "max 3\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_MEMORY_STAT, "pgscan 1\n");
	says(&p, FACTS_MEMORY,
	     "{\"source\":\"memory\",\"from\":\"v2\",\"limits\":{},"
	     "\"phases\":{\"onset\":{\"ms\":1500,\"max\":2}},"
	     "\"missing\":[{\"file\":\"memory.stat\",\"reason\":\"it is read only after the "
	     "trigger: many cgroups are watched\"}]}");
}

static void test_io(void **state)
{
	static char path[] = "/";
	struct facts_phases p = {};

	put_place(&p, FACTS_V2, path);
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_IO_STAT,
			   "7:0 rbytes=4096 rios=1\n8:0 rbytes=1 rios=1\n");
	facts_testing_read(&p, FACTS_END, 8500, FACTS_FILE_V2_IO_STAT,
			   "7:0 rbytes=8192 rios=2\n8:0 rbytes=1 rios=1\n8:16 wbytes=512 wios=1\n");
	facts_testing_read(&p, FACTS_TRIGGER, 6500, FACTS_FILE_V2_IO_MAX,
			   "7:0 rbps=max wbps=7 riops=max wiops=max\n");
	says(&p, FACTS_IO,
	     "{\"source\":\"io\",\"from\":\"v2\",\"from_cgroup\":\"/\","
	     "\"limits\":{\"devices\":[{\"device\":\"loop0\",\"wbps\":7}]},"
	     "\"phases\":{\"during\":{\"ms\":2000,\"devices\":["
	     "{\"device\":\"loop0\",\"rbytes\":4096,\"wbytes\":0,\"rios\":1,\"wios\":0},"
	     "{\"device\":\"8:16\",\"rbytes\":0,\"wbytes\":512,\"rios\":0,\"wios\":1}]}},"
	     "\"disks\":[{\"device\":\"loop0\",\"kind\":\"loop\",\"file\":\"/srv/disk.img\","
	     "\"mounts\":[\"/mnt\"]}]}");
}

UNIT_TESTS(facts_json)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu),	cmocka_unit_test(test_changed),
		cmocka_unit_test(test_host),	cmocka_unit_test(test_missing),
		cmocka_unit_test(test_shallow), cmocka_unit_test(test_io),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
