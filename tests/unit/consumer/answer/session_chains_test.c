/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about wait chains and their sentences, against their schema. */
#include "consumer/answer/session_chains.h"
#include "consumer/evidence/evidence_kinds.h"

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/macro.h"
#include "tests/unit/consumer/testing/chains_testing.h"
#include "tests/unit/consumer/testing/report_testing.h"

static const struct pinned_maps pins;
static const struct signal_host host = { .kinds = evidence_kinds, .pins = &pins };
static const struct signal_target target;
static struct chains_testing waits;
static struct lock_waits no_locks;

/* A session of a second, with the waits in its signal `lock`. */
static struct session_result *new_session(void)
{
	struct session_result *s = report_testing_new_session("/system.slice/api.service");
	struct signal *signal = signals_new(SIGNAL_LOCK, &host, &target);

	assert_non_null(signal);
	signal->off_reason = NULL;
	no_locks.long_waits = &waits.all;
	signal->evidence = &no_locks;
	s->signals[SIGNAL_LOCK] = signal;
	s->start_ns = 0;
	s->stop_ns = NSEC_PER_SEC;
	report_testing_begin(1u << 20, 8192, 12);
	assert_int_equal(output_queue_start(report_testing_lines.output), 0);
	memset(&waits, 0, sizeof(waits));
	return s;
}

/* All lines of the session, which it frees. */
static json_object *report(struct session_result *s)
{
	json_object *all;

	report_testing_report(s);
	all = report_testing_finish();
	s->signals[SIGNAL_LOCK]->evidence = NULL;
	session_result_free(s);
	return all;
}

static void test_line(void **state)
{
	struct session_result *s = new_session();
	json_object *all, *line, *link;

	chains_testing_thread(&waits, 10, 77, "ap\x1bi-7", 1000);
	chains_testing_thread(&waits, 20, 77, "index-3", 1000);
	chains_testing_thread(&waits, 30, 78, "writer-1", 1000)->part_ns[ACCOUNT_RUNNING] =
		NSEC_PER_SEC;
	chains_testing_wait(&waits, 10, ACCOUNT_LOCK, 0, 900, 20);
	chains_testing_wait(&waits, 20, ACCOUNT_PIPE, 0, 800, 30);
	waits.all.ledger = (struct ledger){ .attempted = 5, .emitted = 2 };
	waits.all.ledger.lost[DROP_LONG_WAITS_FULL] = 3;
	all = report(s);
	assert_int_equal(json_object_array_length(all), 3);
	line = at(all, 0);
	assert_string_equal(get(line, "type"), "chain");
	assert_int_equal(number(line, "chain"), 1);
	assert_string_equal(get(line, "end"), "ran");
	assert_true(json_object_get_boolean(json_object_object_get(line, "partial")));
	assert_string_equal(get(line, "says"),
			    "ap\x1bi-7 waited 0.9 s for a lock held by index-3, which waited 0.8 s "
			    "in a pipe for writer-1, which ran 0.8 s");
	link = json_object_array_get_idx(json_object_object_get(line, "links"), 1);
	assert_string_equal(get(link, "comm"), "index-3");
	assert_string_equal(get(link, "wait"), "pipe");
	assert_int_equal(number(link, "ns"), 800 * CHAINS_TESTING_MS);
	link = json_object_array_get_idx(json_object_object_get(line, "links"), 2);
	assert_string_equal(get(link, "did"), "ran");
	assert_int_equal(number(link, "pid"), 78);
	assert_string_equal(get(at(all, 1), "says"),
			    "index-3 waited 0.8 s in a pipe for writer-1, which ran 0.8 s");
	line = at(all, 2);
	assert_string_equal(get(line, "verdict"), "partial");
	assert_non_null(strstr(get(line, "verdict_reason"), "3 of 5 long waits"));
	json_object_put(all);
}

/* Useless chains have no line: short, for work, or without a known thread behind it. */
static void test_no_line(void **state)
{
	struct session_result *s = new_session();
	json_object *all;

	chains_testing_thread(&waits, 10, 77, "short", 1000);
	chains_testing_thread(&waits, 20, 77, "disk", 1000);
	chains_testing_thread(&waits, 30, 77, "worker", 1000);
	chains_testing_thread(&waits, 40, 77, "idle", 1000);
	chains_testing_wait(&waits, 10, ACCOUNT_LOCK, 0, 99, 20);
	chains_testing_wait(&waits, 20, ACCOUNT_IO, 0, 900, 0);
	chains_testing_wait(&waits, 30, ACCOUNT_LOCK, 0, 900, 40);
	chains_testing_wait(&waits, 40, ACCOUNT_IDLE, 0, 900, 0);
	all = report(s);
	assert_int_equal(json_object_array_length(all), 1);
	json_object_put(all);
}

/* No more lines than there may be, those with the most time. */
static void test_many(void **state)
{
	struct session_result *s = new_session();
	json_object *all;

	for (uint32_t i = 0; i < 12; i++) {
		char comm[] = "a";

		comm[0] = (char)('a' + i);
		chains_testing_thread(&waits, 10 + i, 77, comm, 1000);
	}
	chains_testing_thread(&waits, 30, 77, "writer", 1000);
	for (uint32_t i = 0; i < 12; i++)
		chains_testing_wait(&waits, 10 + i, ACCOUNT_PIPE, 0, 200 + 10 * i, 30);
	all = report(s);
	assert_int_equal(json_object_array_length(all), SESSION_CHAINS_MAX + 1);
	assert_non_null(strstr(get(at(all, 0), "says"), "l waited 0.3 s in a pipe for writer"));
	assert_non_null(strstr(get(at(all, 7), "says"), "e waited"));
	json_object_put(all);
}

/* Ends are reported; a sentence stays within its room. */
static void test_sentences(void **state)
{
	struct chain c = {
		.count = 2,
		.end = CHAIN_END_KERNEL,
		.end_comm = "jbd2/vdb-8",
		.links = { { .state = WAIT_BLOCKED + WAIT_LOCK,
			     .ns = 1900 * CHAINS_TESTING_MS,
			     .threads = 12,
			     .comm = "api-7",
			     .lock = 1 },
			   { .state = WAIT_BLOCKED + WAIT_IO,
			     .ns = 1700 * CHAINS_TESTING_MS,
			     .threads = 1,
			     .comm = "writer-3" } },
	};
	const struct lock_name name = { .module = "/usr/bin/shopd", .symbol = "index_lock" };
	char text[SESSION_CHAINS_BYTES + 1];

	session_chains_say(&c, 0, &name, NULL, text, SESSION_CHAINS_BYTES);
	assert_string_equal(text,
			    "12 threads of api- waited 1.9 s for lock index_lock in shopd held by "
			    "writer-3, which waited 1.7 s for disks and files for jbd2/vdb-8, a "
			    "thread of the kernel");
	c.end = CHAIN_END_OPEN;
	session_chains_say(&c, 1, &name, NULL, text, SESSION_CHAINS_BYTES);
	assert_string_equal(text,
			    "writer-3 waited 1.7 s for disks and files, still waiting at the end");
	assert_int_equal(session_chains_say(&c, 2, &name, NULL, text, SESSION_CHAINS_BYTES), 0);
	for (size_t space = 1; space < 200; space++) {
		memset(text, '!', sizeof(text));
		session_chains_say(&c, 0, &name, NULL, text, space);
		assert_true(strlen(text) < space);
		assert_int_equal(text[space], '!');
	}
}

UNIT_TESTS(session_chains)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_line, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_no_line, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test_setup_teardown(test_many, report_testing_setup,
						report_testing_teardown),
		cmocka_unit_test(test_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
