/* SPDX-License-Identifier: BSD-2-Clause */
/* The cgroup that made threads wait for memory, by reclaim, and throttled writers. */
#include "consumer/answer/find_memory.h"
#include "consumer/evidence/evidence_kinds.h"

#include <string.h>

#include "consumer/evidence/memory/reclaim_times.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define NO_DEVICE (4095u << 20 | 1048575u) /* this machine has no such one */

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

/* Threads waited 2 s for memory and 1 s for disks, in a session of 2 s. Returns the findings. */
static struct findings search(const struct reclaim_times *all, uint64_t *ret_io_ns)
{
	struct session_result *session = report_testing_new_session("/a");
	struct signal *reclaim = signals_new(SIGNAL_RECLAIM, &host, &target);
	static struct session_digest summary;
	struct findings_search s = { .session = session, .summary = &summary };

	assert_non_null(reclaim);
	reclaim->evidence = (void *)all;
	session->signals[SIGNAL_RECLAIM] = reclaim;
	session->stop_ns = session->start_ns + 2 * NSEC_PER_SEC;
	s.part_ns[ACCOUNT_MEMORY] = 2 * NSEC_PER_SEC;
	s.part_ns[ACCOUNT_IO] = NSEC_PER_SEC;
	s.found.time_ns[FINDINGS_WAITING] = 3 * NSEC_PER_SEC;
	find_memory(&s);
	*ret_io_ns = s.part_ns[ACCOUNT_IO] - find_memory_pauses(&s, s.part_ns[ACCOUNT_IO]);
	session_result_free(session);
	return s.found;
}

/* The one that had three quarters of the reclaim explains as much of the waits, the host the rest.
 */
static void test_neighbour(void **state)
{
	struct reclaim_part part = { .kind = RECLAIM_DIRECT, .own.time_ns = NSEC_PER_SEC };
	struct reclaim_neighbour n[2] = {};
	struct reclaim_times all = {
		.items = &part, .count = 1, .neighbours = n, .n_neighbours = 2
	};
	struct findings f;
	uint64_t io_ns;

	/* It looks for memory within its own limit: that is no one else's. */
	n[0] = (struct reclaim_neighbour){ .row.path = (char *)"/limited" };
	n[0].kind_ns[RECLAIM_LIMIT] = 9 * NSEC_PER_SEC;
	n[1] = (struct reclaim_neighbour){ .row.path = (char *)"/batch" };
	n[1].kind_ns[RECLAIM_DIRECT] = 2 * NSEC_PER_SEC;
	n[1].kind_ns[RECLAIM_COMPACTION] = NSEC_PER_SEC;
	f = search(&all, &io_ns);
	assert_int_equal(f.count, 2);
	assert_int_equal(f.items[0].cause, FINDING_RECLAIM_NEIGHBOUR);
	assert_int_equal(f.items[0].ns, 3 * NSEC_PER_SEC / 2);
	assert_string_equal(
		f.items[0].says,
		"its threads waited 1.5 s for memory because the host had none free; /batch used "
		"75 % of all direct-reclaim time");
	assert_string_equal(f.items[0].evidence.value, "/batch");
	assert_int_equal(f.items[1].cause, FINDING_MEMORY);
	assert_int_equal(f.items[1].ns, NSEC_PER_SEC / 2);
	/* Less than half of it, none of the session's own, or no cgroup with a known name. */
	n[1].kind_ns[RECLAIM_DIRECT] = 0;
	n[1].kind_ns[RECLAIM_COMPACTION] = NSEC_PER_SEC - 1;
	assert_int_equal(search(&all, &io_ns).items[0].cause, FINDING_MEMORY);
	n[1].kind_ns[RECLAIM_DIRECT] = 2 * NSEC_PER_SEC;
	part.kind = RECLAIM_LIMIT;
	assert_int_equal(search(&all, &io_ns).items[0].cause, FINDING_MEMORY);
	part.kind = RECLAIM_DIRECT;
	n[1].row.path = NULL;
	assert_int_equal(search(&all, &io_ns).items[0].cause, FINDING_MEMORY);
	n[1].row.path = (char *)"/";
	assert_int_equal(search(&all, &io_ns).items[0].cause, FINDING_MEMORY);
	assert_int_equal(io_ns, NSEC_PER_SEC);
}

/* Pauses of writers are waits for disks, and are taken from these. */
static void test_pauses(void **state)
{
	struct reclaim_part parts[] = {
		{ .kind = RECLAIM_THROTTLE,
		  .device = NO_DEVICE,
		  .own = { .count = 40, .open = 2, .time_ns = NSEC_PER_SEC / 2 } },
		{ .kind = RECLAIM_THROTTLE, .own = { .count = 3, .time_ns = NSEC_PER_SEC / 4 } },
	};
	struct reclaim_times all = { .items = parts, .count = 2 };
	struct findings f;
	uint64_t io_ns;

	f = search(&all, &io_ns);
	assert_int_equal(f.count, 2);
	assert_int_equal(f.items[1].cause, FINDING_WRITE_PAUSE);
	assert_string_equal(f.items[1].says,
			    "its writers were throttled for 0.8 s, in 45 pauses: more is written "
			    "than 4095:1048575 takes");
	assert_int_equal(f.items[0].cause, FINDING_MEMORY);
	assert_int_equal(io_ns, NSEC_PER_SEC / 4);
	parts[0].own.time_ns = 5 * NSEC_PER_SEC; /* by more than it waited */
	assert_int_equal(search(&all, &io_ns).items[1].ns, NSEC_PER_SEC);
	assert_int_equal(io_ns, 0);
}

/* Without the signal only this is known. */
static void test_unknown(void **state)
{
	uint64_t io_ns;
	struct findings f = search(NULL, &io_ns);

	assert_int_equal(f.count, 1);
	assert_int_equal(f.items[0].cause, FINDING_MEMORY);
	assert_int_equal(io_ns, NSEC_PER_SEC);
}

UNIT_TESTS(find_memory)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
