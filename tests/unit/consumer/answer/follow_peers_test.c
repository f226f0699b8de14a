/* SPDX-License-Identifier: BSD-2-Clause */
/* The activity of awaited processes, and children that hold threads up. */
#include "consumer/answer/follow_peers.h"
#include "consumer/evidence/evidence_kinds.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "consumer/evidence/time/thread_pools.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/report_testing.h"

enum { SERVICE = 10, SHELL = 20, TOOL = 30 }; /* processes */

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static const struct look_on shell = {
	.kind = LOOK_ON_CHILD, .number = -1, .peer_pid = SHELL, .peer_comm = "sh"
};
static const struct look_on tool = {
	.kind = LOOK_ON_CHILD, .number = TOOL, .peer_pid = TOOL, .peer_comm = "tool"
};

/* A session of 2 s; each row of places waited the whole time. */
static struct wait_place rows[4];
static struct thread_pool accounts[4];
static struct thread_pools pools = { .items = accounts };
static struct session_digest summary;
static struct findings_search search;

static struct wait_place *add_row(uint32_t tgid, uint8_t part, const char *fn,
				  const struct look_on *on)
{
	struct wait_place *row = &rows[summary.waits.places.count++];

	*row = (struct wait_place){ .tgid = tgid,
				    .part = part,
				    .state = part,
				    .fn = fn,
				    .on = on,
				    .weight_ns = 2 * NSEC_PER_SEC };
	return row;
}

static void add_account(uint32_t tgid, uint64_t threads, uint64_t running_ns)
{
	struct thread_pool *pool = &accounts[pools.count++];

	*pool = (struct thread_pool){ .tgid = tgid, .threads = threads };
	pool->part_ns[ACCOUNT_RUNNING] = running_ns;
}

/* A service of two threads, of which one waits for a shell that waits for a tool. */
static int setup(void **state)
{
	struct session_result *session = report_testing_new_session("/a");
	struct signal *signal = signals_new(SIGNAL_POOLS, &host, &target);

	assert_non_null(signal);
	signal->evidence = &pools;
	session->signals[SIGNAL_POOLS] = signal;
	memset(&summary, 0, sizeof(summary));
	summary.waits.places.rows = rows;
	pools.count = 0;
	search = (struct findings_search){ .session = session, .summary = &summary };
	search.found.time_ns[FINDINGS_SESSION] = 2 * NSEC_PER_SEC;
	add_row(SERVICE, ACCOUNT_CHILD, "run_job", &shell);
	add_row(SHELL, ACCOUNT_CHILD, NULL, &tool);
	add_account(SERVICE, 2, 0);
	add_account(SHELL, 1, 0);
	return 0;
}

static int teardown(void **state)
{
	session_result_free((struct session_result *)search.session);
	return 0;
}

static const char *said(void)
{
	static char says[FINDINGS_SAYS_BYTES];

	snprintf(says, sizeof(says), "it waited");
	follow_peers(&search, &shell, says);
	return says;
}

static uint64_t child_ns(void)
{
	const struct wait_place *place;
	uint64_t ns = follow_peers_child(&search, &place);

	assert_ptr_equal(place, ns ? &rows[0] : NULL);
	return ns;
}

static void test_says(void **state)
{
	assert_string_equal(said(), "it waited; meanwhile sh (process 20) waited 2.0 s for tool, "
				    "process 30");
	add_row(TOOL, ACCOUNT_SLEEP, "nap", NULL);
	assert_string_equal(said(), "it waited; meanwhile sh (process 20) waited 2.0 s for tool, "
				    "process 30; meanwhile tool (process 30) slept 2.0 s in nap");
	add_account(TOOL, 1, 1500 * NSEC_PER_MSEC);
	assert_string_equal(said(), "it waited; meanwhile sh (process 20) waited 2.0 s for tool, "
				    "process 30; meanwhile tool (process 30) ran 1.5 s on a CPU");
}

/* A server of several threads: one in a timer beside idle ones says nothing of the others. */
static void test_threads(void **state)
{
	struct wait_place *idle = add_row(TOOL, ACCOUNT_IDLE, "wait_for_clients", NULL);

	idle->idle_ns = idle->weight_ns;
	add_row(TOOL, ACCOUNT_LOCK, "flush_pages", NULL);
	assert_string_equal(said(), "it waited; meanwhile sh (process 20) waited 2.0 s for tool, "
				    "process 30");
	assert_int_equal(child_ns(), 0);
}

/* A circle ends, and a process that is halted has no activity of its own. */
static void test_ends(void **state)
{
	struct look_on stopped = tool;

	rows[1].on = &shell;
	assert_string_equal(said(), "it waited; meanwhile sh (process 20) waited 2.0 s for sh, "
				    "process 20");
	stopped.peer_flags = LOOK_STOPPED;
	rows[1].on = &stopped;
	add_row(TOOL, ACCOUNT_STOPPED, "nap", NULL);
	assert_string_equal(said(), "it waited; meanwhile sh (process 20) waited 2.0 s for tool, "
				    "process 30, stopped by a signal");
	assert_int_equal(child_ns(), 2 * NSEC_PER_SEC);
}

/* A child without work holds no thread up; one that sleeps, not the only thread of a script. */
static void test_child(void **state)
{
	struct wait_place *of_tool;

	assert_int_equal(child_ns(), 0); /* nothing is known of the tool */
	of_tool = add_row(TOOL, ACCOUNT_IDLE, "wait_for_clients", NULL);
	of_tool->idle_ns = of_tool->weight_ns;
	assert_int_equal(child_ns(), 0);
	of_tool->part = of_tool->state = ACCOUNT_SLEEP;
	assert_int_equal(child_ns(), 2 * NSEC_PER_SEC);
	pools.items[0].threads = 1;
	assert_int_equal(child_ns(), 0);
	of_tool->part = of_tool->state = ACCOUNT_LOCK;
	of_tool->idle_ns = 0;
	assert_int_equal(child_ns(), 2 * NSEC_PER_SEC);
}

UNIT_TESTS(follow_peers)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_says, setup, teardown),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
