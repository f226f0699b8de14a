/* SPDX-License-Identifier: BSD-2-Clause */
/* The cgroup that made threads wait for a disk, by its requests. */
#include "consumer/answer/find_disks.h"
#include "consumer/evidence/evidence_kinds.h"

#include <string.h>
#include <sys/syscall.h>

#include "consumer/evidence/disks/block_requests.h"
#include "consumer/evidence/time/call_times.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define NO_DEVICE (4095u << 20 | 1048575u) /* this machine has no such one */

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static struct session_waits waits; /* where */

/* Threads waited `ns` for disks, in a session of 2 s. Returns the findings. */
static struct findings search(const struct block_requests *all, const struct call_times *calls,
			      uint64_t ns)
{
	struct session_result *session = report_testing_new_session("/a");
	struct signal *block = signals_new(SIGNAL_BLOCK, &host, &target);
	struct signal *syscall = signals_new(SIGNAL_SYSCALL, &host, &target);
	static struct session_digest summary;
	struct findings_search s = { .session = session, .summary = &summary };

	assert_true(block && syscall);
	summary.waits = waits;
	block->evidence = (void *)all;
	syscall->evidence = (void *)calls;
	session->signals[SIGNAL_BLOCK] = block;
	session->signals[SIGNAL_SYSCALL] = syscall;
	session->stop_ns = session->start_ns + 2 * NSEC_PER_SEC;
	s.part_ns[ACCOUNT_IO] = s.found.time_ns[FINDINGS_WAITING] = ns;
	find_disks_errors(&s);
	if (ns)
		find_disks(&s);
	session_result_free(session);
	return s.found;
}

static struct findings found(const struct block_requests *all)
{
	return search(all, NULL, 4 * NSEC_PER_SEC);
}

static struct block_times took(uint64_t requests)
{
	struct block_times t = { .requests = requests, .bytes = requests << 20 };

	t.service[24] = requests;
	return t;
}

/* The one that had the disk for three quarters of its time explains as much, the disk the rest. */
static void test_neighbour(void **state)
{
	struct block_disk disk = { .device = NO_DEVICE, .op = BLOCK_WRITE, .all = took(10) };
	struct block_neighbour other = { .row.path = (char *)"/batch",
					 .device = NO_DEVICE,
					 .requests = 300,
					 .bytes = 300u << 20,
					 .service_ns = 3 * NSEC_PER_SEC,
					 .disk_service_ns = 4 * NSEC_PER_SEC };
	struct block_neighbour *n = &other;
	struct block_requests all = {
		.items = &disk, .count = 1, .neighbours = n, .n_neighbours = 1
	};
	struct findings f;

	f = found(&all);
	assert_int_equal(f.count, 2);
	assert_int_equal(f.items[0].cause, FINDING_DISK_NEIGHBOUR);
	assert_int_equal(f.items[0].ns, 3 * NSEC_PER_SEC);
	assert_string_equal(f.items[0].says,
			    "its threads waited 3.0 s for 4095:1048575 while /batch used 75 % of "
			    "the disk's time: 300.0 MiB in 300 requests");
	assert_string_equal(f.items[0].evidence.value, "/batch");
	assert_int_equal(f.items[1].cause, FINDING_DISK);
	assert_int_equal(f.items[1].ns, NSEC_PER_SEC);
	assert_non_null(strstr(f.items[1].says, "; 4095:1048575 did 10 write requests, half of "
						"them in at most 4.19 ms, 99 of 100 in at most "
						"4.19 ms"));
	/*
	 * A cgroup that moves less than the session itself, or has less than half, is not to blame.
	 */
	n->bytes = 9u << 20;
	f = found(&all);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_DISK);
	n->bytes = 300u << 20;
	n->service_ns = 2 * NSEC_PER_SEC - 1;
	assert_int_equal(found(&all).items[0].cause, FINDING_DISK);
	/* Writes of kernel threads for an unknown cgroup make no neighbour. */
	n->service_ns = 3 * NSEC_PER_SEC;
	n->row.path = (char *)"/";
	assert_int_equal(found(&all).items[0].cause, FINDING_DISK);
	n->row.path = (char *)"/batch";
	/* It is on another disk than the one that took the most time. */
	n->service_ns = 3 * NSEC_PER_SEC;
	n->device = 1;
	assert_int_equal(found(&all).items[0].cause, FINDING_DISK);
}

/* A file system on no device, while the disks had little to do: a process or a host serves it. */
static void test_served(void **state)
{
	struct look_on on = { .kind = LOOK_ON_FILE, .fs = "fuse.sshfs", .device = 45 };
	struct session_wait row = { .state = ACCOUNT_IO, .on = &on, .weight_ns = NSEC_PER_SEC };
	struct block_disk disk = { .device = NO_DEVICE, .op = BLOCK_READ, .all = took(10) };
	struct block_requests all = { .items = &disk, .count = 1 };
	struct findings f;

	waits = (struct session_waits){ .rows = &row, .count = 1 };
	f = found(&all);
	assert_int_equal(f.items[0].cause, FINDING_FILE_SERVER);
	assert_non_null(strstr(f.items[0].says, "; its file system (fuse.sshfs) is on no disk"));
	assert_null(strstr(f.items[0].says, "requests"));
	/* An overlay is on no device either: its files are on a disk that was busy. */
	disk.all.service_ns = NSEC_PER_SEC;
	assert_int_equal(found(&all).items[0].cause, FINDING_DISK);
	disk.all.service_ns = 0;
	on.device = 8u << 20;
	assert_int_equal(found(&all).items[0].cause, FINDING_DISK);
	/* What the disks did is not known. */
	on.device = 45;
	assert_int_equal(found(NULL).items[0].cause, FINDING_DISK);
	waits = (struct session_waits){};
}

/* Without the signal only the disk is known. */
static void test_unknown(void **state)
{
	struct findings f = found(NULL);

	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_DISK);
	assert_null(strstr(f.items[0].says, "requests"));
}

/* Of 10 requests 4 failed, which had half of the time; the rest of the waits is the disk's. */
static void test_errors(void **state)
{
	struct block_disk disk = { .device = NO_DEVICE, .op = BLOCK_WRITE, .all = took(10) };
	struct block_requests all = { .items = &disk, .count = 1 };
	struct findings f;

	disk.all.queue_ns = NSEC_PER_SEC / 2;
	disk.all.service_ns = NSEC_PER_SEC * 3 / 2;
	disk.all.errors = 4;
	disk.all.error_ns = NSEC_PER_SEC;
	f = found(&all);
	assert_int_equal(f.count, 2);
	assert_int_equal(f.items[0].cause, FINDING_DISK_ERROR);
	assert_int_equal(f.items[0].ns, 2 * NSEC_PER_SEC);
	assert_string_equal(f.items[0].says, "4 of 10 write requests to 4095:1048575 ended with an "
					     "error, after 250 ms each in the mean");
	assert_string_equal(f.items[0].evidence.type, "disk");
	assert_string_equal(f.items[0].evidence.value, "4095:1048575");
	assert_int_equal(f.items[1].cause, FINDING_DISK);
	assert_int_equal(f.items[1].ns, 2 * NSEC_PER_SEC);
	/* No thread waited: it is reported all the same. */
	f = search(&all, NULL, 0);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_DISK_ERROR);
	disk.all.errors = 0;
	assert_int_equal(search(&all, NULL, 0).count, 0);
}

/* Many short waits are a storm; as many that are long, or a few short ones, are not. */
static void test_syncs(void **state)
{
	struct call_time calls[] = {
		{ .call = SYS_read, .waits = 9000, .wait_ns = 9 * NSEC_PER_SEC },
		{ .call = SYS_fdatasync, .waits = 300, .wait_ns = 3 * NSEC_PER_SEC },
		{ .call = SYS_fsync, .waits = 99, .open = 1, .wait_ns = NSEC_PER_SEC / 2 },
	};
	const struct call_times times = { .items = calls, .count = ARRAY_SIZE(calls) };
	struct block_disk disk = { .device = NO_DEVICE, .op = BLOCK_WRITE, .all = took(10) };
	const struct block_requests all = { .items = &disk, .count = 1 };
	struct findings f = search(NULL, &times, 4 * NSEC_PER_SEC);

	assert_int_equal(f.count, 2);
	assert_int_equal(f.items[0].cause, FINDING_SYNC_STORM);
	assert_int_equal(f.items[0].ns, NSEC_PER_SEC * 7 / 2);
	assert_string_equal(f.items[0].says,
			    "its threads waited 3.5 s until writes were on disk, 400 times, 200 a "
			    "second, 8.75 ms each in the mean, most in fdatasync");
	assert_string_equal(f.items[0].evidence.value, "fdatasync");
	assert_int_equal(f.items[1].cause, FINDING_DISK);
	disk.everybody_bytes = 400ull * 128 * 1024;
	assert_int_equal(search(&all, &times, 4 * NSEC_PER_SEC).items[0].cause, FINDING_SYNC_STORM);
	disk.everybody_bytes += 400;
	assert_int_equal(search(&all, &times, 4 * NSEC_PER_SEC).items[0].cause, FINDING_SYNC);
	calls[1].wait_ns = 9 * NSEC_PER_SEC;
	assert_int_equal(search(NULL, &times, 4 * NSEC_PER_SEC).items[0].cause, FINDING_SYNC);
	calls[1].waits = 0;
	calls[1].wait_ns = 0;
	calls[2].open = 0;
	f = search(NULL, &times, 4 * NSEC_PER_SEC);
	assert_int_equal(f.items[0].cause, FINDING_SYNC);
	assert_non_null(strstr(f.items[0].says, "most in fsync"));
	calls[2].open = 1;
	assert_int_equal(search(NULL, &times, 4 * NSEC_PER_SEC).items[0].cause, FINDING_SYNC_STORM);
}

UNIT_TESTS(find_disks)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbour), cmocka_unit_test(test_served),
		cmocka_unit_test(test_unknown),	  cmocka_unit_test(test_errors),
		cmocka_unit_test(test_syncs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
