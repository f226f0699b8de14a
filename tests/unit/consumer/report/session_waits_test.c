/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/report/session_waits.h"
#include "shared/tools/macro.h"

#define MS NSEC_PER_MSEC

static void add_in(struct session_waits *s, enum phase phase, const char *fn, uint8_t state,
		   bool idle, uint64_t ms)
{
	const struct named_frame frame = { .fn = fn };
	const struct stack stack = {
		.wait = state, .weight_ns = ms * MS, .threads = 1, .phase = (uint8_t)phase
	};

	session_waits_add(s, &stack, idle, &frame, 1);
}

static void add(struct session_waits *s, const char *fn, uint8_t state, bool idle, uint64_t ms)
{
	add_in(s, PHASE_DURING, fn, state, idle, ms);
}

/* What the resource measures is said of the function that waits longest for it. */
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

/* Without a resource it is what they waited for longest; neither work nor a CPU. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_a_resource),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_of_none),
		cmocka_unit_test(test_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
