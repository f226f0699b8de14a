/* SPDX-License-Identifier: BSD-2-Clause */
/* The finding of a pool that has no thread to spare. */
#include "consumer/answer/find_pools.h"
#include "consumer/evidence/evidence_kinds.h"

#include <netinet/in.h>
#include <string.h>

#include "consumer/evidence/sockets/socket_peers.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/sampling/wait_kind.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;
static struct session_digest summary;

static void add(enum phase phase, const char *fn, const char *caller, uint8_t state, uint64_t ms)
{
	const struct named_frame frame = { .fn = fn };
	const struct known_wait wait = { .state = state, .frame = &frame, .callers = { caller } };
	const struct stack stack = { .tgid = 7,
				     .comm = "worker-1",
				     .phase = (uint8_t)phase,
				     .weight_ns = ms * NSEC_PER_MSEC };

	pool_places_add(&summary.pools, &stack, &wait, true);
}

/*
 * Of 5 s of two workers' time 200 ms are at a lock; connections that wait to be accepted are
 * reported.
 */
static void test_sentence(void **state)
{
	struct socket_peer p = { .key = { .port = 80,
					  .family = AF_INET,
					  .way = SOCKET_LISTENS,
					  .address = { 10, 0, 0, 5 } } };
	struct socket_peers peers = { .items = &p, .count = 1, .looks = 8 };
	struct session_result *session = report_testing_new_session("/a");
	struct findings_search s = { .session = session, .summary = &summary };
	struct signal *socket = signals_new(SIGNAL_SOCKET, &host, &target);
	const struct finding *f = &s.found.items[0];

	assert_non_null(socket);
	socket->evidence = &peers;
	session->signals[SIGNAL_SOCKET] = socket;
	s.found.time_ns[FINDINGS_SESSION] = 2500 * NSEC_PER_MSEC;
	memset(&summary, 0, sizeof(summary));
	pool_places_init(&summary.pools);
	find_pools_starved(&s);
	assert_int_equal(s.found.count, 0);
	summary.waits.during_ms = summary.waits.calm_ms = 2500;
	add(PHASE_BEFORE, "take_task", NULL, WAIT_BLOCKED + WAIT_LOCK, 4000);
	add(PHASE_BEFORE, "call_billing", NULL, WAIT_BLOCKED + WAIT_SLEEP, 1000);
	add(PHASE_DURING, "call_billing", "run_tasks", WAIT_BLOCKED + WAIT_SLEEP, 4800);
	add(PHASE_DURING, "log", NULL, WAIT_BLOCKED + WAIT_IO, 200);
	p.most[SOCKET_LEVEL_QUEUE] = 12;
	find_pools_starved(&s);
	assert_int_equal(s.found.count, 1);
	assert_int_equal(f->cause, FINDING_STARVED_POOL);
	assert_int_equal(f->ns, 2500 * NSEC_PER_MSEC);
	assert_string_equal(
		f->says,
		"no thread of worker- was free for new work: 2 of them waited for a timer, for "
		"96 % of their time in call_billing (called by run_tasks); in the baseline 80 % of "
		"it was in take_task; up to 12 connections waited to be accepted at 10.0.0.5:80");
	assert_string_equal(f->evidence.value, "sleep");
	assert_int_equal(f->evidence.pid, 7);
	pool_places_done(&summary.pools);
	session_result_free(session);
}

UNIT_TESTS(find_pools)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sentence) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
