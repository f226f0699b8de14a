/* SPDX-License-Identifier: BSD-2-Clause */
/* What session.end finds, from known accounts, locks and stacks; against its schema. */
#include "consumer/answer/session_findings.h"
#include "consumer/evidence/evidence_kinds.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/evidence/locks/lock_waits.h"
#include "consumer/evidence/time/queue_waits.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/evidence/waits/look_coverage.h"
#include "consumer/kernel/pinned_maps.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/chains_testing.h"
#include "tests/unit/consumer/testing/report_testing.h"

#define CGROUP "/system.slice/api.service"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;

static struct signal *new_signal(struct session_result *s, enum signal_bit id)
{
	struct signal *signal = signals_new(id, &host, &target);

	assert_non_null(signal);
	signal->off_reason = NULL;
	s->signals[id] = signal;
	return signal;
}

/* A session of two seconds. */
static struct session_result *new_session(void)
{
	struct session_result *s = report_testing_new_session(CGROUP);

	s->start_ns = 0;
	s->stop_ns = 2 * NSEC_PER_SEC;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	return s;
}

/* Reports it, and returns the value of the key in its last line. */
static json_object *end_of(struct session_result *s, json_object **ret_all)
{
	report_testing_report(s);
	*ret_all = report_testing_finish();
	return at(*ret_all, json_object_array_length(*ret_all) - 1);
}

static json_object *first_of(json_object *end)
{
	return json_object_array_get_idx(json_object_object_get(end, "findings"), 0);
}

/* Waits were not measured: that is reported, and no finding is made up. */
static void test_unknown(void **state)
{
	struct session_result *s = new_session();
	json_object *all, *end = end_of(s, &all);

	assert_false(json_object_object_get_ex(end, "findings", NULL));
	assert_non_null(strstr(get(end, "findings_reason"), "no signal"));
	json_object_put(all);
	session_result_free(s);
}

static struct chains_testing waits;

/* Three threads wait a second each for a lock of writer-3, which waits for a disk in that time. */
static void wait_for_writer(void)
{
	memset(&waits, 0, sizeof(waits));
	for (uint32_t tid = 71; tid <= 73; tid++)
		chains_testing_thread(&waits, tid, 77, "api-1", 2000);
	chains_testing_thread(&waits, 80, 77, "writer-3", 2000);
	for (uint32_t tid = 71; tid <= 73; tid++)
		chains_testing_wait(&waits, tid, ACCOUNT_LOCK, 100, 1100, 80)->address = 0xc0de;
	chains_testing_wait(&waits, 80, ACCOUNT_IO, 0, 850, 0);
}

/* One thread had a lock while it waited for a disk: its wait is reported. */
static void test_chain(void **state)
{
	struct lock_waited item = { .lock = { .address = 0xc0de, .tgid = 77 },
				    .locks = 1,
				    .start_ns = 5,
				    .waits = 4,
				    .total_ns = 3 * NSEC_PER_SEC,
				    .longest_ns = NSEC_PER_SEC,
				    .threads = 3,
				    .pattern = LOCK_PATTERN_LONG_HOLD,
				    .n_wakers = 1,
				    .wakers = 1,
				    .woken = { { .tid = 80, .tgid = 77, .comm = "writer-3" } } };
	struct lock_waits locks = { .items = &item, .count = 1 };
	struct session_result *s = new_session();
	json_object *all, *finding, *selector;

	wait_for_writer();
	new_signal(s, SIGNAL_LOCK)->evidence = &locks;
	locks.long_waits = &waits.all;
	finding = first_of(end_of(s, &all));
	assert_string_equal(get(finding, "cause"), "lock_held");
	assert_int_equal(number(finding, "explains_ms"), 3000);
	assert_string_equal(get(finding, "says"),
			    "3 threads waited 3.0 s in all for one lock, each for long; writer-3 "
			    "had it; meanwhile writer-3 waited 2.2 s for disks and files");
	selector = json_object_array_get_idx(json_object_object_get(finding, "evidence"), 0);
	assert_string_equal(get(selector, "address"), "0xc0de");
	selector = json_object_array_get_idx(json_object_object_get(finding, "evidence"), 1);
	assert_string_equal(get(selector, "type"), "chain");
	assert_int_equal(number(selector, "chain"), number(finding, "chain"));
	json_object_put(all);
	s->signals[SIGNAL_LOCK]->evidence = NULL;
	session_result_free(s);
}

/* Waits for a CPU are divided: behind others, behind its own threads, and unknown. */
static void test_queue(void **state)
{
	static char path[] = "/batch.slice";
	struct queue_blamed blamed = { .row = { .cgroup_id = 9, .path = path },
				       .ns = NSEC_PER_SEC };
	struct queue_waits q = { .blame = { .items = &blamed, .count = 1 } };
	struct session_result *s = new_session();
	struct thread_pool *sum = &q.pools.all;
	json_object *all, *end;

	sum->wall_ns = 4 * NSEC_PER_SEC;
	sum->part_ns[ACCOUNT_QUEUE] = 2 * NSEC_PER_SEC;
	sum->queue.waits[3] = 7;
	sum->queue.behind_ns[QUEUE_OTHERS] = NSEC_PER_SEC;
	sum->queue.behind_ns[QUEUE_SIBLINGS] = NSEC_PER_SEC / 2;
	sum->queue.behind_ns[QUEUE_UNSEEN] = NSEC_PER_SEC / 2;
	new_signal(s, SIGNAL_RUNQ)->evidence = &q;
	end = end_of(s, &all);
	assert_string_equal(get(first_of(end), "cause"), "cpu_neighbour");
	assert_int_equal(number(first_of(end), "explains_ms"), 1000);
	assert_non_null(strstr(get(first_of(end), "says"), "/batch.slice for 1.0 s of it"));
	assert_int_equal(number(end, "waited_ms"), 2000);
	assert_true(json_object_get_double(json_object_object_get(end, "unexplained")) == 0.25);
	json_object_put(all);
	s->signals[SIGNAL_RUNQ]->evidence = NULL;
	session_result_free(s);
}

/* A positive nice value stands beside the neighbour: whether it counts is not known. */
static void test_nice(void **state)
{
	static const struct {
		uint64_t plain_ns, niced_ns;
		bool says;
	} rows[] = { { 10, 20, true }, { 30, 20, false }, { 30, 0, false }, { 0, 0, false } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static char path[] = "/batch.slice";
		struct queue_blamed blamed = { .row = { .cgroup_id = 9, .path = path },
					       .ns = NSEC_PER_SEC };
		struct queue_waits q = { .blame = { .items = &blamed, .count = 1 } };
		struct session_result *s = new_session();
		struct thread_pool *sum = &q.pools.all;
		struct look_coverage *looks;
		json_object *all, *end;

		sum->wall_ns = 4 * NSEC_PER_SEC;
		sum->part_ns[ACCOUNT_QUEUE] = sum->queue.behind_ns[QUEUE_OTHERS] = NSEC_PER_SEC;
		new_signal(s, SIGNAL_RUNQ)->evidence = &q;
		looks = new_signal(s, SIGNAL_OFFCPU)->evidence;
		looks->queue_ns[0 - LOOK_NICE_LEAST] = rows[i].plain_ns;
		looks->queue_ns[19 - LOOK_NICE_LEAST] = rows[i].niced_ns;
		end = end_of(s, &all);
		assert_string_equal(get(first_of(end), "cause"), "cpu_neighbour");
		assert_int_equal(strstr(get(first_of(end), "says"),
					"; its threads run at nice 19, ") != NULL,
				 rows[i].says);
		json_object_put(all);
		s->signals[SIGNAL_RUNQ]->evidence = NULL;
		session_result_free(s);
	}
}

/* In a session of some processes, other ones of the cgroup are not the process itself. */
static void test_queue_by_process(void **state)
{
	static const struct {
		bool by_process;
		uint64_t threads;
		const char *cause, *whose;
	} rows[] = {
		{ false, 1, "cpu_demand", "its own other threads had" },
		{ true, 1, "cpu_neighbour", "other processes of " CGROUP " had" },
		{ true, 2, "cpu_demand",
		  "threads of " CGROUP " had, its own or those of other processes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct queue_waits q = { .blame = { .reason = "it is of one process" } };
		struct session_result *s = new_session();
		struct thread_pool *sum = &q.pools.all;
		char says[256];
		json_object *all, *end;

		sum->wall_ns = 2 * NSEC_PER_SEC;
		sum->threads = rows[i].threads;
		sum->part_ns[ACCOUNT_QUEUE] = NSEC_PER_SEC;
		sum->queue.behind_ns[QUEUE_SIBLINGS] = NSEC_PER_SEC;
		s->by_process = rows[i].by_process;
		new_signal(s, SIGNAL_RUNQ)->evidence = &q;
		end = end_of(s, &all);
		snprintf(says, sizeof(says), "its threads waited 1.0 s for CPUs that %s",
			 rows[i].whose);
		assert_string_equal(get(first_of(end), "cause"), rows[i].cause);
		assert_string_equal(get(first_of(end), "says"), says);
		json_object_put(all);
		s->signals[SIGNAL_RUNQ]->evidence = NULL;
		session_result_free(s);
	}
}

/* Threads that waited for less than a tenth of the session did not stall. */
static void test_nothing_unusual(void **state)
{
	struct thread_pools pools = {};
	struct session_result *s = new_session();
	json_object *all, *end;

	pools.all.wall_ns = 20 * NSEC_PER_SEC;
	pools.all.part_ns[ACCOUNT_IO] = NSEC_PER_SEC / 6;
	new_signal(s, SIGNAL_POOLS)->evidence = &pools;
	end = end_of(s, &all);
	assert_null(first_of(end));
	assert_int_equal(number(end, "waited_ms"), 166);
	json_object_put(all);
	s->signals[SIGNAL_POOLS]->evidence = NULL;
	session_result_free(s);
}

/*
 * A request is late, so waits for locks and for full pipes count whole: but not those that are
 * short and many, as when calm.
 */
static uint64_t late_ms(enum trigger_kind kind, uint8_t state, const struct look_on *on,
			uint64_t waits_of_lock)
{
	const struct named_frame frame = { .fn = "take_task" };
	const struct known_wait wait = { .state = state, .frame = &frame, .on = on };
	const struct stack stack = { .phase = PHASE_DURING, .weight_ns = 2 * NSEC_PER_SEC };
	const struct stack calm = { .phase = PHASE_BEFORE, .weight_ns = 2 * NSEC_PER_SEC };
	struct lock_waited item = { .lock = { .address = 0xc0de, .tgid = 77 },
				    .waits = waits_of_lock,
				    .total_ns = 2 * NSEC_PER_SEC };
	struct lock_waits locks = { .items = &item, .count = 1 };
	struct session_result *s = new_session();
	struct session_digest summary;
	struct findings *found;
	json_object *end;
	struct jsonw w;
	bool unknown;
	uint64_t ms;

	s->reason.kind = kind;
	s->pre_ms = 8000;
	new_signal(s, SIGNAL_LOCK)->evidence = &locks;
	assert_int_equal(session_digest_init(&summary), 0);
	summary.waits.during_ms = summary.waits.calm_ms = 2000;
	session_waits_add(&summary.waits, &stack, &wait);
	session_waits_add(&summary.waits, &calm, &wait);
	jsonw_init(&w, 8192);
	jsonw_object(&w, NULL);
	found = session_findings_find(s, &summary, NULL, NULL, &unknown);
	session_findings_write(found, unknown, &w);
	free(found);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	end = json_tokener_parse(strndupa(w.data, w.bytes));
	assert_non_null(end);
	ms = number(end, "waited_ms");
	json_object_put(end);
	jsonw_done(&w);
	session_digest_done(&summary);
	s->signals[SIGNAL_LOCK]->evidence = NULL;
	session_result_free(s);
	json_object_put(report_testing_finish());
	return ms;
}

static void test_late(void **state)
{
	static const struct look_on lock = { .address = 0xc0de };
	static const struct look_on empty = { .kind = LOOK_ON_PIPE };
	static const struct look_on full = { .kind = LOOK_ON_PIPE, .state = 1 };

	assert_int_equal(late_ms(TRIGGER_REQUEST, ACCOUNT_LOCK, &lock, 20), 2000);
	assert_int_equal(late_ms(TRIGGER_REQUEST, ACCOUNT_LOCK, &lock, 41), 0);
	assert_int_equal(late_ms(TRIGGER_REQUEST, ACCOUNT_PIPE, &empty, 20), 0);
	assert_int_equal(late_ms(TRIGGER_REQUEST, ACCOUNT_PIPE, &full, 20), 2000);
}

/* A question of one connection counts by its age, where threads stand: not by pressure. */
static void test_owed(void **state)
{
	struct look_on on = { .kind = LOOK_ON_SOCKET,
			      .family = AF_INET,
			      .protocol = IPPROTO_TCP,
			      .peer_port = 5432,
			      .asked = 1,
			      .longest_ns = 5 * NSEC_PER_SEC };

	assert_int_equal(late_ms(TRIGGER_STUCK, ACCOUNT_SOCKET, &on, 1), 2000);
	assert_int_equal(late_ms(TRIGGER_PRESSURE, ACCOUNT_SOCKET, &on, 1), 0);
	on.longest_ns = 60 * NSEC_PER_SEC; /* older than the pre-roll */
	assert_int_equal(late_ms(TRIGGER_STUCK, ACCOUNT_SOCKET, &on, 1), 0);
	on.asked = 0;
	on.longest_ns = 5 * NSEC_PER_SEC;
	assert_int_equal(late_ms(TRIGGER_STUCK, ACCOUNT_SOCKET, &on, 1), 0);
}

/* What halts threads from outside explains their time, and no wait of theirs does. */
static void test_halts(void **state)
{
	static const struct {
		enum account_part part;
		const char *cause, *says;
	} rows[] = {
		{ ACCOUNT_STOPPED, "stopped",
		  "its threads were stopped by a signal (SIGSTOP or a similar one) for 2.0 s" },
		{ ACCOUNT_TRACED, "traced", "its threads were stopped by a tracer for 2.0 s" },
		{ ACCOUNT_FROZEN, "frozen",
		  "its threads were frozen with their cgroup (cgroup.freeze) for 2.0 s" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct session_result *s = new_session();
		struct thread_pools pools = {};
		json_object *all, *end;

		pools.all.wall_ns = pools.all.part_ns[rows[i].part] = 2 * NSEC_PER_SEC;
		pools.all.threads = 1;
		new_signal(s, SIGNAL_POOLS)->evidence = &pools;
		end = end_of(s, &all);
		assert_string_equal(get(first_of(end), "cause"), rows[i].cause);
		assert_string_equal(get(first_of(end), "says"), rows[i].says);
		assert_int_equal(number(end, "waited_ms"), 2000);
		json_object_put(all);
		s->signals[SIGNAL_POOLS]->evidence = NULL;
		session_result_free(s);
	}
}

#define EACH(test) \
	cmocka_unit_test_setup_teardown(test, report_testing_setup, report_testing_teardown)

UNIT_TESTS(session_findings)
{
	const struct CMUnitTest tests[] = {
		EACH(test_unknown),	     EACH(test_chain), EACH(test_queue),
		EACH(test_nothing_unusual),  EACH(test_late),  EACH(test_owed),
		EACH(test_queue_by_process), EACH(test_halts), EACH(test_nice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
