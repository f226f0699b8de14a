/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <linux/futex.h>

#include "consumer/evidence/waits/known_wait.h"
#include "consumer/sampling/wait_kind.h"
#include "shared/tools/macro.h"

#define FRAMES_MAX 8

static struct module *const program = (struct module *)8, *const library = (struct module *)16;

/* Judges a stack of these functions, leaf first; "@": of a library. */
static struct known_wait judge(uint8_t state, const char *const *names, size_t n)
{
	static struct named_frame frames[FRAMES_MAX];
	union {
		struct stack stack;
		char space[sizeof(struct stack) + FRAMES_MAX * sizeof(struct frame)];
	} u = { 0 };
	struct known_wait wait;

	u.stack.wait = state;
	u.stack.exe = program;
	u.stack.kernel_frames = 1;
	frames[0] = (struct named_frame){ .fn = "schedule" };
	for (size_t i = 1; i <= n; i++) {
		const char *name = names[i - 1];
		bool of_library = name && name[0] == '@';

		frames[i] = (struct named_frame){
			.fn = of_library ? name + 1 : name,
			.module = of_library ? "/lib/libc.so.6" : "/bin/server",
		};
		u.stack.frames[i].module = of_library ? library : program;
	}
	known_wait_judge(&u.stack, NULL, frames, n + 1, &wait);
	return wait;
}

/* A backend of PostgreSQL waits for a lock in epoll; functions without a name are passed over. */
static void test_lock(void **state)
{
	const char *const names[] = { "@epoll_wait", "WaitEventSetWait", "WaitLatch", "ProcSleep",
				      NULL,	     "heap_update",	 "main" };
	struct known_wait w;

	w = judge(WAIT_BLOCKED + WAIT_IDLE, names, ARRAY_SIZE(names));
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_LOCK);
	assert_false(w.idle);
	assert_string_equal(w.frame->fn, "ProcSleep");
	assert_string_equal(w.callers[0], "heap_update");
	assert_null(w.callers[1]);
	/* On its way there it waits for a page: that is its wait. */
	w = judge(WAIT_BLOCKED + WAIT_IO, names, ARRAY_SIZE(names));
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_IO);
}

/* A thread of Go's scheduler without work sleeps as one that waits for a lock does. */
static void test_idle(void **state)
{
	const char *const names[] = { "runtime.futex.abi0", "runtime.notesleep", "runtime.stopm",
				      "runtime.findRunnable" };
	const char *const of_lock[] = { "runtime.futex.abi0", "runtime.futexsleep",
					"runtime.lock2" };
	struct known_wait w = judge(WAIT_BLOCKED + WAIT_LOCK, names, ARRAY_SIZE(names));

	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_IDLE);
	assert_true(w.idle);
	assert_string_equal(w.frame->fn, "runtime.stopm");
	w = judge(WAIT_BLOCKED + WAIT_LOCK, of_lock, ARRAY_SIZE(of_lock));
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_LOCK);
	assert_false(w.idle);
	assert_string_equal(w.frame->fn, "runtime.lock2");
}

/* Without such a function the system call has the word. */
static void test_unknown(void **state)
{
	const char *const names[] = { "@epoll_wait", "WaitEventSetWait", "WaitLatch",
				      "CheckpointerMain" };
	const char *const of_library[] = { "@recv", "@read_answer" };
	struct known_wait w;

	w = judge(WAIT_BLOCKED + WAIT_IDLE, names, ARRAY_SIZE(names));
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_IDLE);
	assert_true(w.idle);
	assert_string_equal(w.frame->fn, "CheckpointerMain");
	assert_null(w.callers[0]);
	/* All of them wait for another: the innermost one is better than none. */
	w = judge(WAIT_BLOCKED + WAIT_IDLE, names, 3);
	assert_string_equal(w.frame->fn, "WaitEventSetWait");
	w = judge(WAIT_BLOCKED + WAIT_SOCKET, of_library, ARRAY_SIZE(of_library));
	assert_string_equal(w.frame->fn, "recv");
	w = judge(WAIT_BLOCKED + WAIT_OTHER, NULL, 0);
	assert_string_equal(w.frame->fn, "schedule");
}

/* A pool's thread and the one that waits for another process of its server. */
static void test_others(void **state)
{
	const char *const pool[] = { "@pthread_cond_wait", "next_job", "main" };
	const char *const asks[] = { "@epoll_wait", "WaitLatch", "ConditionVariableTimedSleep",
				     "RequestCheckpoint" };
	const char *const sleeps[] = { "@epoll_wait", "WaitLatch", "pg_sleep" };
	struct known_wait w;

	w = judge(WAIT_BLOCKED + WAIT_LOCK, pool, ARRAY_SIZE(pool));
	assert_true(w.condition);
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_LOCK);
	assert_string_equal(w.frame->fn, "next_job");
	w = judge(WAIT_BLOCKED + WAIT_IDLE, asks, ARRAY_SIZE(asks));
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_OTHER);
	assert_false(w.idle);
	assert_string_equal(w.frame->fn, "RequestCheckpoint");
	w = judge(WAIT_BLOCKED + WAIT_IDLE, sleeps, ARRAY_SIZE(sleeps));
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_SLEEP);
	assert_true(w.idle);
}

static struct known_wait judge_futex(int operation, const char *module)
{
	const struct look_on on = { .kind = LOOK_ON_FUTEX, .address = 64, .number = operation };
	const struct named_frame frames[] = { { .fn = "pthread_cond_wait", .module = module },
					      { .fn = "next_job", .module = "/bin/server" } };
	struct stack stack = { .wait = WAIT_BLOCKED + WAIT_LOCK };
	struct known_wait w;

	known_wait_judge(&stack, &on, frames, ARRAY_SIZE(frames), &w);
	assert_int_equal(w.state, WAIT_BLOCKED + WAIT_LOCK);
	return w;
}

/* The kernel side's kind of the futex decides, in a function that no table has. */
static void test_kind_of_a_futex(void **state)
{
	static const struct named_frame frames[] = { { .fn = "uv_sem_wait" } };
	struct look_on on = { .kind = LOOK_ON_FUTEX, .address = 64, .state = LOOK_LOCK_EVENT };
	struct stack stack = { .wait = WAIT_BLOCKED + WAIT_LOCK };
	struct known_wait w;

	known_wait_judge(&stack, &on, frames, ARRAY_SIZE(frames), &w);
	assert_true(w.condition && w.event);
	on.state = LOOK_LOCK_MUTEX;
	known_wait_judge(&stack, &on, frames, ARRAY_SIZE(frames), &w);
	assert_false(w.condition);
	on.state = LOOK_LOCK_UNKNOWN;
	known_wait_judge(&stack, &on, frames, ARRAY_SIZE(frames), &w);
	assert_false(w.condition);
}

/*
 * A thread that wants the mutex back in pthread_cond_wait waits for a lock, where the operation
 * proves it.
 */
static void test_mutex_of_a_condition(void **state)
{
	static const char libc[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	static const char old[] = "/lib64/libpthread.so.0", musl[] = "/lib/ld-musl-x86_64.so.1";
	const int private = FUTEX_PRIVATE_FLAG;

	assert_true(judge_futex(FUTEX_WAIT_BITSET | private, libc).condition);
	assert_true(judge_futex(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, libc).condition);
	assert_false(judge_futex(FUTEX_WAIT | private, libc).condition);
	assert_true(judge_futex(FUTEX_WAIT | private, old).condition);
	assert_true(judge_futex(FUTEX_WAIT | private, musl).condition);
	assert_true(judge_futex(FUTEX_WAIT | private, NULL).condition);
	assert_false(judge_futex(FUTEX_LOCK_PI | private, old).condition);
	assert_false(judge_futex(FUTEX_LOCK_PI2 | private, musl).condition);
}

/*
 * With functions that are interpreted, the place is the innermost of them, but a function of a
 * library that it has called; never one of the interpreter. A function may have any name.
 */
static void test_interpreted(void **state)
{
	struct named_frame frames[] = {
		{ .fn = "clock_nanosleep", .module = "/lib/libc.so.6", .kind = "user" },
		{ .fn = "sqlite3InvokeBusyHandler",
		  .module = "/lib/libsqlite3.so",
		  .kind = "user" },
		{ .fn = "PyObject_Vectorcall", .kind = "user", .interpreter = true },
		{ .fn = "pthread_cond_wait",
		  .module = "/srv/app.py",
		  .kind = "runtime",
		  .line = 7 },
		{ .fn = "PyObject_Call", .kind = "user", .interpreter = true },
		{ .fn = "handle", .module = "/srv/app.py", .kind = "runtime", .line = 9 },
	};
	union {
		struct stack stack;
		char space[sizeof(struct stack) + FRAMES_MAX * sizeof(struct frame)];
	} s = { 0 };
	struct known_wait wait;

	s.stack.wait = WAIT_BLOCKED + WAIT_LOCK;
	s.stack.exe = program;
	for (size_t i = 0; i < 6; i++)
		s.stack.frames[i].module = i < 2   ? library
					   : i % 2 ? &stack_sample_runtime
						   : program;
	known_wait_judge(&s.stack, NULL, frames, 6, &wait);
	assert_string_equal(wait.frame->fn, "sqlite3InvokeBusyHandler");
	assert_string_equal(wait.callers[0], "pthread_cond_wait");
	assert_string_equal(wait.callers[1], "handle");
	assert_false(wait.condition);
	frames[1].interpreter = true;
	known_wait_judge(&s.stack, NULL, frames, 6, &wait);
	assert_string_equal(wait.frame->fn, "pthread_cond_wait");
	assert_int_equal(wait.frame->line, 7);
	assert_string_equal(wait.callers[0], "handle");
	assert_null(wait.callers[1]);
}

UNIT_TESTS(known_wait)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_mutex_of_a_condition),
		cmocka_unit_test(test_kind_of_a_futex),
		cmocka_unit_test(test_interpreted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
