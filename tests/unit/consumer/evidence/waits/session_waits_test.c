/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <sys/socket.h>

#include "consumer/evidence/waits/session_waits.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define MS NSEC_PER_MSEC

static void add_in(struct session_waits *s, enum phase phase, const char *fn, uint8_t state,
		   bool idle, uint64_t ms)
{
	const struct named_frame frame = { .fn = fn };
	const struct stack stack = {
		.wait = state, .weight_ns = ms * MS, .threads = 1, .phase = (uint8_t)phase
	};
	const struct known_wait wait = { .state = state, .idle = idle, .frame = &frame };

	session_waits_add(s, &stack, &wait);
}

static void add(struct session_waits *s, const char *fn, uint8_t state, bool idle, uint64_t ms)
{
	add_in(s, PHASE_DURING, fn, state, idle, ms);
}

/* The resource's wait is reported with the function that waits longest for it. */
static void test_of_a_resource(void **state)
{
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	assert_int_equal(session_waits_clause(&s, RESOURCE_IO, NULL, text, sizeof(text)), 0);
	add(&s, "take_lock", WAIT_BLOCKED + WAIT_LOCK, false, 900);
	assert_int_equal(session_waits_clause(&s, RESOURCE_IO, NULL, text, sizeof(text)), 0);
	add(&s, "sync_log", WAIT_BLOCKED + WAIT_IO, false, 100);
	add(&s, "read_index", WAIT_BLOCKED + WAIT_IO, false, 20);
	add(&s, "sync_log", WAIT_BLOCKED + WAIT_IO, false, 50);
	assert_true(session_waits_clause(&s, RESOURCE_IO, NULL, text, sizeof(text)) > 0);
	assert_string_equal(text, "; its threads waited 170 ms for io, 150 ms of it in sync_log");
	session_waits_done(&s);
}

/* The time accounts know the time, the looks the place. */
static void test_exact(void **state)
{
	uint64_t part_ns[ACCOUNT_PARTS_] = { [ACCOUNT_IO] = 393 * MS, [ACCOUNT_LOCK] = 5 * MS };
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	add(&s, "sync_log", WAIT_BLOCKED + WAIT_IO, false, 50);
	session_waits_clause(&s, RESOURCE_IO, part_ns, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 393 ms for io, most of it in sync_log");
	part_ns[ACCOUNT_IO] = 0;
	session_waits_clause(&s, RESOURCE_IO, part_ns, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 50 ms for io, 50 ms of it in sync_log");
	session_waits_done(&s);
}

static void add_held(struct session_waits *s, uint32_t holder, uint64_t ms)
{
	const struct named_frame frame = { .fn = "take_lock" };
	const struct stack stack = { .wait = WAIT_BLOCKED + WAIT_LOCK,
				     .weight_ns = ms * MS,
				     .threads = 1,
				     .phase = PHASE_DURING };
	static struct look_on on[8];
	const struct known_wait wait = { .state = stack.wait, .frame = &frame, .on = &on[holder] };

	on[holder] = (struct look_on){ .kind = LOOK_ON_FUTEX,
				       .state = LOOK_LOCK_MUTEX,
				       .peer_pid = holder,
				       .peer_comm = "w" };
	session_waits_add(s, &stack, &wait);
}

/* A holder is named for a place only where nearly all of its time was behind it. */
static void test_holder(void **state)
{
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	add_held(&s, 3, 100);
	add_held(&s, 3, 80);
	add_held(&s, 4, 20);
	session_waits_say_on(&s.rows[0], text, sizeof(text));
	assert_string_equal(text, " held by w (thread 3)");
	add_held(&s, 4, 10);
	text[0] = 0;
	session_waits_say_on(&s.rows[0], text, sizeof(text));
	assert_string_equal(text, "");
	session_waits_done(&s);
}

/* Without a resource it is their longest wait; neither work nor a CPU. */
static void test_of_none(void **state)
{
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	add(&s, "accept_next", WAIT_BLOCKED + WAIT_IDLE, true, 5000);
	add(&s, "spin", WAIT_FOR_CPU, false, 4000);
	assert_int_equal(session_waits_clause(&s, RESOURCE_COUNT_, NULL, text, sizeof(text)), 0);
	add(&s, "ask_bank", WAIT_BLOCKED + WAIT_SOCKET, false, 800);
	add(&s, "take_lock", WAIT_BLOCKED + WAIT_LOCK, false, 900);
	session_waits_clause(&s, RESOURCE_COUNT_, NULL, text, sizeof(text));
	assert_string_equal(text,
			    "; its threads waited 900 ms for a lock, 900 ms of it in take_lock");
	session_waits_done(&s);
}

/* What waited before the trigger is no wait of the stall; what waited in the onset explains it. */
static void test_phases(void **state)
{
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	add_in(&s, PHASE_BEFORE, "sync_log", WAIT_BLOCKED + WAIT_IO, false, 5000);
	add_in(&s, PHASE_ONSET, "sync_log", WAIT_BLOCKED + WAIT_IO, false, 300);
	assert_int_equal(session_waits_clause(&s, RESOURCE_IO, NULL, text, sizeof(text)), 0);
	add(&s, "read_index", WAIT_BLOCKED + WAIT_IO, false, 20);
	assert_int_equal(session_waits_of(&s, RESOURCE_IO), 320 * MS);
	session_waits_clause(&s, RESOURCE_IO, NULL, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 20 ms for io, 20 ms of it in read_index");
	session_waits_done(&s);
}

/* On a condition variable it may be work: it comes behind a wait that is a tenth of a thread's. */
static void test_conditions(void **state)
{
	const struct named_frame frame = { .fn = "next_job" };
	const struct stack stack = { .wait = WAIT_BLOCKED + WAIT_LOCK,
				     .weight_ns = 8000 * MS,
				     .threads = 4,
				     .phase = PHASE_DURING };
	const struct known_wait wait = { .state = stack.wait, .condition = true, .frame = &frame };
	uint64_t part_ns[ACCOUNT_PARTS_] = { [ACCOUNT_LOCK] = 9000 * MS };
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	session_waits_add(&s, &stack, &wait);
	session_waits_clause(&s, RESOURCE_COUNT_, part_ns, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 9000 ms for work or another thread, most "
				  "of it in next_job");
	add(&s, "take_lock", WAIT_BLOCKED + WAIT_LOCK, false, 199);
	session_waits_clause(&s, RESOURCE_COUNT_, part_ns, text, sizeof(text));
	assert_non_null(strstr(text, "next_job"));
	add(&s, "take_lock", WAIT_BLOCKED + WAIT_LOCK, false, 1);
	session_waits_clause(&s, RESOURCE_COUNT_, part_ns, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 200 ms for a lock, 200 ms of it in "
				  "take_lock");
	session_waits_done(&s);
}

/* A function's meaning of a wait is not in the accounts: then the looks' time is reported. */
static void test_moved(void **state)
{
	const struct named_frame frame = { .fn = "ProcSleep" };
	const struct look_on on = { .kind = LOOK_ON_FILE, .name = "journal" };
	const struct stack stack = { .wait = WAIT_BLOCKED + WAIT_IDLE,
				     .weight_ns = 700 * MS,
				     .threads = 1,
				     .phase = PHASE_DURING };
	const struct known_wait wait = { .state = WAIT_BLOCKED + WAIT_LOCK,
					 .frame = &frame,
					 .on = &on,
					 .callers = { "LockAcquire", "heap_update" } };
	uint64_t part_ns[ACCOUNT_PARTS_] = { [ACCOUNT_LOCK] = 5 * MS };
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	session_waits_add(&s, &stack, &wait);
	session_waits_clause(&s, RESOURCE_COUNT_, part_ns, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 700 ms for a lock, 700 ms of it in "
				  "ProcSleep (called by LockAcquire, heap_update) on the file "
				  "journal");
	assert_true(session_waits_clause(&s, RESOURCE_COUNT_, NULL, text, 40) >= 40);
	session_waits_done(&s);
}

/* A service that only waits for work is reported so. */
static void test_idle(void **state)
{
	const struct named_frame frame = { .fn = "serve" };
	const struct look_on on = { .kind = LOOK_ON_OTHER, .name = "[eventpoll]" };
	const struct stack stack = { .wait = WAIT_BLOCKED + WAIT_IDLE,
				     .weight_ns = 2000 * MS,
				     .phase = PHASE_DURING };
	struct known_wait wait = { .state = stack.wait, .idle = true, .frame = &frame, .on = &on };
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	assert_int_equal(session_waits_idle_clause(&s, text, sizeof(text)), 0);
	add(&s, "await_signals", WAIT_BLOCKED + WAIT_IDLE, true, 3000);
	session_waits_add(&s, &stack, &wait);
	session_waits_idle_clause(&s, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 5000 ms for work or answers, 2000 ms of it "
				  "in serve: the peer is not known");
	session_waits_done(&s);
	/* The set was judged; and cut. */
	for (uint32_t cut = 0; cut < 2; cut++) {
		const struct look_on set = { .kind = LOOK_ON_EPOLL, .items = 3, .cut = cut };

		wait.on = &set;
		assert_int_equal(session_waits_init(&s), 0);
		session_waits_add(&s, &stack, &wait);
		session_waits_idle_clause(&s, text, sizeof(text));
		assert_string_equal(text, cut ? "; its threads waited 2000 ms for work or answers, "
						"2000 ms of it in serve: the peer is not known"
					      : "; its threads waited 2000 ms for work, 2000 ms of "
						"it in serve: no TCP connection that was opened "
						"there waits for an answer");
		session_waits_done(&s);
	}
}

/* It may wait for unix sockets that were opened there: they are reported. */
static void test_idle_unix(void **state)
{
	const struct named_frame frame = { .fn = "serve" };
	const struct stack stack = { .wait = WAIT_BLOCKED + WAIT_IDLE,
				     .weight_ns = 2000 * MS,
				     .phase = PHASE_DURING };
	const struct look_on set = {
		.kind = LOOK_ON_EPOLL, .items = 3, .unix_opened = 2, .path = "/run/pg.sock"
	};
	const struct known_wait wait = {
		.state = stack.wait, .idle = true, .frame = &frame, .on = &set
	};
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	session_waits_add(&s, &stack, &wait);
	session_waits_idle_clause(&s, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 2000 ms for work or answers, 2000 ms of it "
				  "in serve: the peer is not known; 2 unix connections were "
				  "opened there, one to /run/pg.sock");
	session_waits_done(&s);
}

/* The peer that an epoll waits for is reported, and that is a wait. */
static void test_requests(void **state)
{
	const struct named_frame frame = { .fn = "serve" };
	const struct look_on on = { .kind = LOOK_ON_EPOLL,
				    .family = AF_INET,
				    .peer = { 10, 0, 0, 7 },
				    .peer_port = 8080,
				    .asked = 12,
				    .longest_ns = 1900 * MS };
	const struct stack stack = { .wait = WAIT_BLOCKED + WAIT_IDLE,
				     .weight_ns = 2000 * MS,
				     .phase = PHASE_DURING };
	const uint64_t part_ns[ACCOUNT_PARTS_] = { [ACCOUNT_IDLE] = 2000 * MS };
	struct session_waits s;
	struct known_wait wait;
	char text[256] = "";

	known_wait_judge(&stack, &on, &frame, 1, &wait);
	assert_int_equal(wait.state, WAIT_BLOCKED + WAIT_SOCKET);
	assert_false(wait.idle);
	assert_int_equal(session_waits_init(&s), 0);
	session_waits_add(&s, &stack, &wait);
	session_waits_clause(&s, RESOURCE_COUNT_, part_ns, text, sizeof(text));
	assert_string_equal(text, "; its threads waited 2000 ms for answers of 10.0.0.7:8080 (12 "
				  "connections a thread, the longest for 1900 ms) in serve");
	for (size_t space = 0; space < 60; space += 5)
		assert_true(session_waits_clause(&s, RESOURCE_COUNT_, part_ns, text, space) >=
			    (int)space);
	session_waits_done(&s);
}

/* The place is named that is waited in longer than when calm, though another one weighs more. */
static void test_growth(void **state)
{
	struct session_waits s;
	char text[256] = "";

	assert_int_equal(session_waits_init(&s), 0);
	s.during_ms = 1000;
	s.calm_ms = 4000;
	add(&s, "read_commands", WAIT_BLOCKED + WAIT_PIPE, false, 1000);
	add(&s, "take_lock", WAIT_BLOCKED + WAIT_LOCK, false, 900);
	add_in(&s, PHASE_BEFORE, "read_commands", WAIT_BLOCKED + WAIT_PIPE, false, 4000);
	add_in(&s, PHASE_BEFORE, "take_lock", WAIT_BLOCKED + WAIT_LOCK, false, 400);
	add_in(&s, PHASE_BEFORE, "gone", WAIT_BLOCKED + WAIT_LOCK, false, 9000);
	assert_int_equal(s.count, 2);
	assert_int_equal(s.rows[1].calm_ns, 100 * MS);
	session_waits_clause(&s, RESOURCE_COUNT_, NULL, text, sizeof(text));
	assert_string_equal(text,
			    "; its threads waited 900 ms for a lock, 900 ms of it in take_lock");
	/* Where nothing grew it is the heaviest. */
	add_in(&s, PHASE_BEFORE, "take_lock", WAIT_BLOCKED + WAIT_LOCK, false, 4000);
	session_waits_clause(&s, RESOURCE_COUNT_, NULL, text, sizeof(text));
	assert_non_null(strstr(text, "in read_commands"));
	session_waits_done(&s);
}

/* Names as long as C++ has them never make the line of the session's end too long: rows go. */
static void test_long_names(void **state)
{
	static char names[SESSION_WAITS_TOP][256];
	struct session_waits s;
	struct jsonw w;

	assert_int_equal(session_waits_init(&s), 0);
	for (size_t i = 0; i < SESSION_WAITS_TOP; i++) {
		memset(names[i], 'a' + (int)i, sizeof(names[i]) - 1);
		add(&s, names[i], WAIT_BLOCKED + WAIT_IO, false, 100 - i);
	}
	jsonw_init(&w, 2400);
	jsonw_object(&w, NULL);
	session_waits_write(&s, &w);
	assert_true(w.bytes <= 2400 - SESSION_WAITS_AFTER_BYTES + 1);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_non_null(memmem(w.data, w.bytes, "bbbb", 4));
	assert_null(memmem(w.data, w.bytes, "hhhh", 4));
	jsonw_done(&w);
	/* No row at all: then there is no array. */
	jsonw_init(&w, 200);
	jsonw_object(&w, NULL);
	session_waits_write(&s, &w);
	jsonw_object_end(&w);
	assert_int_equal(jsonw_end(&w), 0);
	assert_int_equal(w.bytes, 2);
	jsonw_done(&w);
	session_waits_done(&s);
}

/* One thread that waits in two stacks of a row is one thread; another one counts. */
static void test_threads(void **state)
{
	const struct named_frame frame = { .fn = "sync_log" };
	const struct known_wait wait = { .state = WAIT_BLOCKED + WAIT_IO, .frame = &frame };
	static const struct {
		uint32_t tid, on;
	} seen[] = { { 7, 1 }, { 7, 2 }, { 7, 3 }, { 7, 1 }, { 8, 2 } };
	struct stack_sample sample = { .tgid = 7, .wait = wait.state };
	struct stack_table stacks;
	struct session_waits s;

	assert_int_equal(session_waits_init(&s), 0);
	stack_table_init(&stacks, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		sample.tid = seen[i].tid;
		sample.on = seen[i].on;
		assert_int_equal(stack_table_add(&stacks, &sample, PHASE_DURING, MS, NULL), 0);
	}
	assert_int_equal(stacks.count, 3);
	for (size_t i = 0; i < stacks.count; i++)
		session_waits_add(&s, stacks.items[i], &wait);
	session_waits_count_threads(&s, &stacks);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.rows[0].threads, 2);
	stack_table_done(&stacks);
	session_waits_done(&s);
}

UNIT_TESTS(session_waits)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holder),	  cmocka_unit_test(test_of_a_resource),
		cmocka_unit_test(test_exact),	  cmocka_unit_test(test_of_none),
		cmocka_unit_test(test_phases),	  cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_moved),	  cmocka_unit_test(test_idle),
		cmocka_unit_test(test_idle_unix), cmocka_unit_test(test_requests),
		cmocka_unit_test(test_growth),	  cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
