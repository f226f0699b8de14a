/* SPDX-License-Identifier: BSD-2-Clause */
/* What requests to a disk say of who made threads wait for it. */
#include "consumer/report/find_disks.h"

#include <string.h>

#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/block_requests.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define NO_DEVICE (4095u << 20 | 1048575u) /* this machine has no such one */

static const struct pinned_maps pins;
static const struct signal_host host = { .pins = &pins };
static const struct signal_target target;

/* Threads waited 4 s for disks. Returns what was found. */
static struct findings found(const struct block_requests *all)
{
	struct session_result *session = report_testing_new_session("/a");
	struct signal *signal = signals_new(SIGNAL_BLOCK, &host, &target);
	static struct summary summary;
	struct findings_search s = { .session = session, .summary = &summary };

	assert_non_null(signal);
	signal->block = all;
	session->signals[SIGNAL_BLOCK] = signal;
	s.part_ns[ACCOUNT_IO] = s.found.time_ns[FINDINGS_WAITING] = 4 * NSEC_PER_SEC;
	find_disks(&s);
	session_result_free(session);
	return s.found;
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
	struct block_requests all = { .items = &disk, .count = 1, .n_neighbours = 1 };
	struct block_neighbour *n = &all.neighbours[0];
	struct findings f;

	*n = (struct block_neighbour){ .device = NO_DEVICE,
				       .requests = 300,
				       .bytes = 300u << 20,
				       .service_ns = 3 * NSEC_PER_SEC,
				       .disk_service_ns = 4 * NSEC_PER_SEC,
				       .path = (char *)"/batch" };
	f = found(&all);
	assert_int_equal(f.count, 2);
	assert_int_equal(f.items[0].cause, FINDING_DISK_NEIGHBOUR);
	assert_int_equal(f.items[0].ns, 3 * NSEC_PER_SEC);
	assert_string_equal(f.items[0].says,
			    "its threads waited 3.0 s for 4095:1048575, of whose time /batch had "
			    "75 %: 300.0 MiB in 300 requests");
	assert_string_equal(f.items[0].evidence.value, "/batch");
	assert_int_equal(f.items[1].cause, FINDING_DISK);
	assert_int_equal(f.items[1].ns, NSEC_PER_SEC);
	assert_non_null(strstr(f.items[1].says, "; 4095:1048575 did 10 write requests, half of "
						"them in at most 4.19 ms, 99 of 100 in at most "
						"4.19 ms"));
	/* Who moves less than the session itself does, or has less than half, is not to blame. */
	n->bytes = 9u << 20;
	f = found(&all);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_DISK);
	n->bytes = 300u << 20;
	n->service_ns = 2 * NSEC_PER_SEC - 1;
	assert_int_equal(found(&all).items[0].cause, FINDING_DISK);
	/* It is on another disk than the one that took the most time. */
	n->service_ns = 3 * NSEC_PER_SEC;
	n->device = 1;
	assert_int_equal(found(&all).items[0].cause, FINDING_DISK);
}

/* Without the signal the disk is all that can be said. */
static void test_unknown(void **state)
{
	struct findings f = found(NULL);

	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_DISK);
	assert_null(strstr(f.items[0].says, "requests"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
