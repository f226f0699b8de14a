/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads that count as stuck, by the recorder's looks, and the begin of a session. */
#include "tests/unit/consumer/testing/group_testing.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "consumer/conditions/pressure_follow.h"
#include "consumer/conditions/stuck_follow.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/watch/binding.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define MS    NSEC_PER_MSEC
#define LOCK  (WAIT_BLOCKED + WAIT_LOCK)
#define SLEEP (WAIT_BLOCKED + WAIT_SLEEP)

static struct look_pass pass;
static struct watch *w;
static struct look_on on; /* of all looks */

/* Puts the rule in force beside one that keeps the watch, which has been there for a minute. */
static void use_rule(const char *when)
{
	const struct rule *rules;
	char text[1024];

	snprintf(
		text, sizeof(text),
		"{\"version\":1,\"rules\":[{\"name\":\"keep\",\"match\":{\"cgroup_prefix\":\"%s\"}},"
		"{\"name\":\"api\",\"match\":{\"comm\":\"node\"},\"when\":[%s],"
		"\"capture\":{\"cooldown_ms\":0}}]}",
		group.path, when);
	fake_rules(fake, text);
	rules = fake->a.active.set->rules->rules;
	cgroups_learn(&fake->a.cgroups, group.id, group.path);
	assert_int_equal(watch_get(&fake->a.watches, group.id, 0, &w), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(binding_add_cgroup(w, &rules[i]), 0);
	w->start_ns -= 60 * NSEC_PER_SEC;
}

static int setup(void **state)
{
	group_begin("stuck");
	on = (struct look_on){ 0 };
	pass = (struct look_pass){ .began_ns = clock_mono_ns() - 50 * NSEC_PER_SEC, .all = true };
	if (fake) {
		wait_recorder_init(&fake->a.waits, WAIT_RECORDER_BYTES);
		fake->a.pressure.waits = &fake->a.waits;
	}
	return 0;
}

static int end_all(void **state)
{
	if (fake)
		wait_recorder_done(&fake->a.waits);
	return teardown(state);
}

static void see(uint32_t tid, uint64_t switches, uint8_t wait, uint16_t frames)
{
	struct look_record record = {
		.head = { .tid = tid, .slot = w->slot, .time_ns = pass.began_ns },
		.switches = switches,
		.on = on,
	};
	struct stack_sample *h = new_stack_sample(frames, 0, NULL);
	struct look_seen seen = { .head = &record.head, .record = &record, .sample = h };

	h->tid = h->tgid = tid;
	h->slot = w->slot;
	h->epoch = w->epoch;
	h->wait = wait;
	snprintf(h->comm, sizeof(h->comm), "worker-%u", tid);
	wait_recorder_seen(&fake->a.waits, &pass, &seen);
	free(h);
}

/* A pass that finds `n` threads in one wait, in which they have made so many switches, and others.
 */
static void look(uint32_t n, uint64_t switches, uint8_t wait, uint32_t others)
{
	pass.number++;
	pass.began_ns += 4 * NSEC_PER_SEC;
	for (uint32_t tid = 1; tid <= n; tid++)
		see(tid, switches, wait, 5);
	for (uint32_t tid = 100; tid < 100 + others; tid++)
		see(tid, pass.number + 100, SLEEP, 3);
	wait_recorder_passed(&fake->a.waits, &pass);
	pressure_follow_drained(&fake->a.pressure, clock_mono_ns());
}

static struct stuck_found find(void)
{
	struct stuck_found found;

	assert_int_equal(stuck_follow_find(&fake->a.waits, w, &found), 0);
	return found;
}

static void end_session(void)
{
	assert_non_null(w->session);
	session_end(&fake->a.sessions, w->session);
	triggers_step(&fake->a.triggers, clock_mono_ns() + NSEC_PER_SEC);
	assert_null(w->session);
}

/* A client that polls for the answer of its server is stuck; an epoll or no question is not. */
static void test_poll(void **state)
{
	static const struct {
		uint32_t kind;
		uint16_t peer_port;
		uint64_t threads;
	} rows[] = { { LOOK_ON_POLL, 5432, 6 },
		     { LOOK_ON_SELECT, 5432, 6 },
		     { LOOK_ON_EPOLL, 5432, 0 },
		     { LOOK_ON_POLL, 0, 0 } };

	if (!fake)
		skip();
	use_rule("{\"stuck_threads_pct\":50}");
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		on = (struct look_on){ 0 };
		look(6, 100 * i + 10, SLEEP, 4);
		on = (struct look_on){ .kind = rows[i].kind,
				       .family = AF_INET,
				       .peer_port = rows[i].peer_port };
		look(6, 100 * i + 20, WAIT_BLOCKED + WAIT_IDLE, 4);
		look(6, 100 * i + 20, WAIT_BLOCKED + WAIT_IDLE, 4);
		assert_int_equal(find().threads, rows[i].threads);
		assert_int_equal(find().wait, rows[i].threads ? WAIT_BLOCKED + WAIT_SOCKET : 0);
		if (w->session)
			end_session();
	}
}

/* Threads that worked stand in one wait from one look to the next: there is one session. */
static void test_session(void **state)
{
	_cleanup_json_ json_object *line = NULL;
	json_object *reason;

	if (!fake)
		skip();
	use_rule("{\"stuck_threads_pct\":50}");
	look(6, 10, SLEEP, 4);
	look(6, 20, LOCK, 4);
	assert_int_equal(find().threads, 0);
	assert_int_equal(fake_count(fake, "session.start"), 0);
	look(6, 20, LOCK, 4);
	assert_int_equal(find().threads, 6);
	assert_int_equal(find().all, 10);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	line = fake_last(fake, "session.start");
	reason = json_object_object_get(json_object_object_get(line, "reason"), "stuck");
	assert_int_equal(json_object_get_int(json_object_object_get(reason, "threads")), 6);
	assert_int_equal(json_object_get_int(json_object_object_get(reason, "of_threads")), 10);
	assert_string_equal(fake_text(reason, "wait"), "lock");
	assert_string_equal(fake_text(reason, "share_pct"), "60.000");
	/* They came there between the first look and the second. */
	assert_true(json_object_get_int64(json_object_object_get(reason, "measured_ms")) >= 6000);
	end_session();
	look(6, 20, LOCK, 4);
	assert_int_equal(fake_count(fake, "session.start"), 1);
	/* They went on, and stand again. */
	look(6, 30, SLEEP, 4);
	look(6, 40, LOCK, 4);
	look(6, 40, LOCK, 4);
	assert_int_equal(fake_count(fake, "session.start"), 2);
	end_session();
}

/* Less than the share, fewer than the floor, or in several places: not stuck. */
static void test_shares(void **state)
{
	if (!fake)
		skip();
	use_rule("{\"stuck_threads_pct\":50}");
	look(6, 10, SLEEP, 7);
	look(6, 20, LOCK, 7);
	look(6, 20, LOCK, 7);
	assert_int_equal(find().threads, 6);
	assert_int_equal(fake_count(fake, "session.start"), 0);
	look(STUCK_THREADS_MIN - 1, 30, SLEEP, 0);
	look(STUCK_THREADS_MIN - 1, 40, LOCK, 0);
	look(STUCK_THREADS_MIN - 1, 40, LOCK, 0);
	assert_int_equal(find().all, STUCK_THREADS_MIN - 1);
	assert_int_equal(find().threads, STUCK_THREADS_MIN - 1);
	assert_int_equal(fake_count(fake, "session.start"), 0);
}

/* A thread that is idle, waits for a CPU, never ran, or ran long ago is not stuck. */
static void test_idle(void **state)
{
	if (!fake)
		skip();
	use_rule("{\"stuck_threads_pct\":50}");
	look(6, 10, LOCK, 0);
	look(6, 10, LOCK, 0);
	assert_int_equal(find().threads, 0); /* there since before the first look */
	look(6, 20, SLEEP, 0);
	look(6, 20, SLEEP, 0);
	assert_int_equal(find().threads, 0);
	look(6, 30, WAIT_FOR_CPU, 0);
	look(6, 30, WAIT_FOR_CPU, 0);
	assert_int_equal(find().threads, 0);
	look(0, 0, LOCK, 0); /* all run; or: they are new */
	look(6, STUCK_SWITCHES_MIN - 1, LOCK, 0);
	look(6, STUCK_SWITCHES_MIN - 1, LOCK, 0);
	assert_int_equal(find().threads, 0);
	look(6, 40, SLEEP, 0);
	look(6, 50, LOCK, 0);
	look(6, 50, LOCK, 0);
	assert_int_equal(find().threads, 6);
	end_session();
	pass.began_ns += STUCK_RAN_NS;
	look(6, 50, LOCK, 0);
	assert_int_equal(find().threads, 0);
	assert_int_equal(fake_count(fake, "session.start"), 1);
}

/* Processes that started anew have run, but not here: what a new watch finds is no stall. */
static void test_restart(void **state)
{
	if (!fake)
		skip();
	use_rule("{\"stuck_threads_pct\":50}");
	look(6, 10, SLEEP, 0);
	look(6, 20, LOCK, 0);
	w->emptied_ns = pass.began_ns;
	look(6, 20, LOCK, 0);
	assert_int_equal(find().threads, 0);
	assert_int_equal(fake_count(fake, "session.start"), 0);
}

/* After three sessions in an hour it is how the service works. */
static void test_habit(void **state)
{
	_cleanup_json_ json_object *line = NULL;

	if (!fake)
		skip();
	use_rule("{\"stuck_threads_pct\":50}");
	pass.began_ns -= 20 * NSEC_PER_SEC;
	w->start_ns -= 60 * NSEC_PER_SEC;
	for (uint64_t i = 1; i <= HABIT_SESSIONS + 1; i++) {
		look(6, 100 * i, SLEEP, 0);
		look(6, 100 * i + 1, LOCK, 0);
		look(6, 100 * i + 1, LOCK, 0);
		if (i <= HABIT_SESSIONS)
			end_session();
	}
	assert_null(w->session);
	assert_int_equal(fake_count(fake, "session.start"), HABIT_SESSIONS);
	line = fake_last(fake, "trigger.held");
	assert_string_equal(fake_text(line, "reason"), "habit");
	assert_string_equal(fake_text(line, "trigger"), "stuck");
}

UNIT_TESTS(stuck_follow)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_session, setup, end_all),
		cmocka_unit_test_setup_teardown(test_poll, setup, end_all),
		cmocka_unit_test_setup_teardown(test_shares, setup, end_all),
		cmocka_unit_test_setup_teardown(test_idle, setup, end_all),
		cmocka_unit_test_setup_teardown(test_restart, setup, end_all),
		cmocka_unit_test_setup_teardown(test_habit, setup, end_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
