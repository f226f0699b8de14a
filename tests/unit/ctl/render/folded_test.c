/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader, the selection and `trocar folded`, by whole command lines on files. */
#include "tests/unit/runner/unit.h"

#include "shared/tools/cleanup.h"
#include "tests/unit/ctl/events_testing.h"

/* Every sample stands for 100 ns. */
#define TWO                                                                                      \
	EVENTS_START("1")                                                                        \
	EVENTS_STACK("1", "before", "web", "3", "300",                                           \
		     EVENTS_USER("leaf") "," EVENTS_USER("main"))                                \
	EVENTS_STACK("1", "during", "web", "4", "400",                                           \
		     EVENTS_USER("leaf") "," EVENTS_USER("main"))                                \
	EVENTS_STACK("1", "during", "log", "2", "200", EVENTS_KERNEL("read") "," EVENTS_UNNAMED) \
	EVENTS_END("1")                                                                          \
	EVENTS_START("2")                                                                        \
	EVENTS_STACK("2", "during", "web", "5", "500", EVENTS_USER("other"))                     \
	EVENTS_END("2")

static void folds(const char *expected)
{
	assert_string_equal(events_err, "");
	assert_string_equal(events_out, expected);
}

static void test_sums_by_stack(void **state)
{
	const char *one = "0000000000000001";

	events_write(TWO);
	assert_int_equal(events_command("folded", "--session", one, events_file, NULL), 0);
	folds("log;[libc.so.6];read 2\nweb;main;leaf 7\n");
	assert_int_equal(
		events_command("folded", "--session", one, "--count", "ns", events_file, NULL), 0);
	folds("log;[libc.so.6];read 200\nweb;main;leaf 700\n");
	assert_int_equal(events_command("folded", "--session", one, "--annotate", "--offsets",
					events_file, NULL),
			 0);
	folds("log;[libc.so.6+0x2724a];read_[k] 2\nweb;main;leaf 7\n");
}

/* One session, unless all are asked for; and of several rules each stands for itself. */
static void test_one_session(void **state)
{
	events_write(TWO);
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;other 5\n");
	assert_string_equal(events_err, "trocar: the newest session alone; 1 more: --all\n");
	assert_int_equal(events_command("folded", "--all", events_file, NULL), COMMAND_FINE);
	folds("rule1;log;[libc.so.6];read 2\nrule1;web;main;leaf 7\nrule2;web;other 5\n");
}

/* Samples of two rates do not add up; their times do. */
static void test_rates(void **state)
{
	events_write(EVENTS_STACK("1", "before", "web", "3", "1500", EVENTS_USER("leaf"))
			     EVENTS_STACK("1", "during", "web", "4", "400", EVENTS_USER("leaf")));
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;leaf 1900\n");
	assert_non_null(strstr(events_err, "in nanoseconds, because"));
	assert_int_equal(events_command("folded", "--phase", "during", events_file, NULL), 0);
	folds("web;leaf 4\n");
	assert_int_equal(events_command("folded", "--count", "samples", events_file, NULL), 0);
	folds("web;leaf 7\n");
}

static void test_selects(void **state)
{
	static const char *const cases[][3] = {
		{ "--session", "0000000000000002", "web;other 5\n" },
		{ "--rule", "rule2", "web;other 5\n" },
		{ "--cgroup", "/c/2", "web;other 5\n" },
		{ "--cgroup", "/c",
		  "rule1;log;[libc.so.6];read 2\nrule1;web;main;leaf 7\nrule2;web;other 5\n" },
		{ "--since", "2026-11-21T15:59:02Z", "web;other 5\n" },
		{ "--until", "2026-11-21T15:59:02Z", "log;[libc.so.6];read 2\nweb;main;leaf 7\n" },
		{ "--pid", "7",
		  "rule1;log;[libc.so.6];read 2\nrule1;web;main;leaf 7\nrule2;web;other 5\n" },
		{ "--signal", "oncpu",
		  "rule1;log;[libc.so.6];read 2\nrule1;web;main;leaf 7\nrule2;web;other 5\n" },
		{ "--phase", "before", "rule1;web;main;leaf 3\n" },
		{ "--comm", "log", "rule1;log;[libc.so.6];read 2\n" },
	};
	static const char *const no_session[][2] = {
		{ "--cgroup", "/c/x" }, { "--session", "1" }, { "--until", "2025-01-01" },
		{ "--rule", "rule" },	{ "--host", "shop" },
	};
	static const char *const no_stack[][2] = { { "--pid", "8" },
						   { "--signal", "offcpu" },
						   { "--comm", "we" } };

	events_write(TWO);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(events_command("folded", "--all", events_file, cases[i][0],
						cases[i][1], NULL),
				 COMMAND_FINE);
		folds(cases[i][2]);
	}
	for (size_t i = 0; i < sizeof(no_session) / sizeof(*no_session); i++) {
		assert_int_equal(events_command("folded", events_file, no_session[i][0],
						no_session[i][1], NULL),
				 COMMAND_FAILED);
		assert_string_equal(events_out, "");
		assert_non_null(strstr(events_err, "no session is selected; the newest of the 2"));
		assert_non_null(strstr(events_err, "0000000000000002  2026-11-21T15:59:02  -     "
						   "rule2  /c/2\n"));
	}
	for (size_t i = 0; i < sizeof(no_stack) / sizeof(*no_stack); i++) {
		assert_int_equal(events_command("folded", "--all", events_file, no_stack[i][0],
						no_stack[i][1], NULL),
				 COMMAND_FAILED);
		assert_string_equal(events_out, "");
		assert_non_null(strstr(events_err, "no stack is selected, of 4 lines; there are:\n"
						   "  --signal: oncpu\n  --phase: before, during\n"
						   "  --comm: web, log\n  --pid: 7\n"));
	}
}

#define WALL                                                                            \
	EVENTS_STACK("1", "during", "web", "4", "100",                                  \
		     EVENTS_USER("take") "," EVENTS_USER("main"))                       \
	EVENTS_WAIT("1", "during", "web", "3", "200", EVENTS_BLOCKED("lock", "false"),  \
		    EVENTS_USER("take") "," EVENTS_USER("main"))                        \
	EVENTS_WAIT("1", "during", "web", "3", "50", EVENTS_RUNNABLE,                   \
		    EVENTS_USER("take") "," EVENTS_USER("main"))                        \
	EVENTS_WAIT("1", "during", "web", "3", "900", EVENTS_BLOCKED("socket", "true"), \
		    EVENTS_USER("serve"))                                               \
	EVENTS_WAIT("1", "during", "web", "3", "7", EVENTS_BLOCKED("comet", "false"),   \
		    EVENTS_USER("serve"))

/* CPU time and waits add up to time, and above each stack is which it was. */
static void test_wall(void **state)
{
	events_write(WALL);
	assert_int_equal(events_command("folded", "--signal", "wall", events_file, NULL), 0);
	folds("web;main;take;[lock] 200\nweb;main;take;[on CPU] 100\n"
	      "web;main;take;[waits for a CPU] 50\nweb;serve;[idle] 900\nweb;serve;[other] 7\n");
	assert_int_equal(events_command("folded", "--signal", "wall", "--count", "samples",
					events_file, NULL),
			 COMMAND_USAGE);
	assert_non_null(strstr(events_err, "want --count ns"));
	/* One signal alone counts samples as ever, and the one of CPU time is the default. */
	assert_int_equal(events_command("folded", "--signal", "offcpu", "--count", "samples",
					events_file, NULL),
			 0);
	folds("web;main;take 6\nweb;serve 6\n");
	assert_int_equal(events_command("folded", "--count", "samples", events_file, NULL), 0);
	folds("web;main;take 4\n");
}

static void test_words_that_mean_nothing_are_refused(void **state)
{
	static const char *const cases[][2] = {
		{ "--phase", "after" },	 { "--pid", "x" },	  { "--since", "last week" },
		{ "--count", "bytes" },	 { "--by", "comm,comm" }, { "--by", "colour" },
		{ "--memory-mib", "0" }, { "--by", "" },	  { "--until", "2026-13-01" },
	};

	events_write(TWO);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			events_command("folded", events_file, cases[i][0], cases[i][1], NULL),
			COMMAND_USAGE);
		assert_non_null(strstr(events_err, cases[i][0]));
		assert_string_equal(events_out, "");
	}
	assert_int_equal(events_command("folded", "--json", NULL), COMMAND_USAGE);
	assert_int_equal(events_command("folded", "/nonexistent", NULL), COMMAND_FAILED);
	assert_string_equal(events_err, "trocar: /nonexistent: No such file or directory\n");
}

static void test_stands_on_what_is_asked_for(void **state)
{
	events_write(EVENTS_STACK("1", "before", "web", "3", "300", EVENTS_USER("leaf")));
	events_command("folded", events_file, "--by",
		       "session,rule,cgroup,signal,phase,exe,comm,pid", NULL);
	folds("0000000000000001;rule1;/c/1;oncpu;before;/bin/web;web;pid 7;leaf 3\n");
	events_command("folded", events_file, "--by", "none", NULL);
	folds("leaf 3\n");
}

/* Numbers of different signals do not add up: waits are not among CPU time. */
static void test_what_ran_alone(void **state)
{
	events_write(
		EVENTS_STACK("1", "during", "web", "3", "300", EVENTS_USER("leaf")) EVENTS_HEAD(
			"stack",
			"1") ",\"signal\":\"offcpu\",\"phase\":\"during\","
			     "\"comm\":\"web\",\"count\":1,\"weight_ns\":100,\"frames\":[]}\n");
	events_command("folded", events_file, NULL);
	folds("web;leaf 3\n");
	events_write(EVENTS_WAIT("1", "during", "web", "3", "200", EVENTS_BLOCKED("lock", "true"),
				 EVENTS_USER("main")));
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "");
	assert_string_equal(events_err, "trocar: no thread ran on a CPU in the selection; "
					"--signal offcpu has the waits\n");
	assert_int_equal(events_command("folded", "--pid", "9", events_file, NULL), COMMAND_FAILED);
	assert_non_null(strstr(events_err, "no stack is selected, of 1 line; there are:\n"
					   "  --signal: offcpu\n"));
}

static void test_names_from_outside_are_tame(void **state)
{
	events_write(EVENTS_STACK("1", "during", "w\\u001b[2J", "1", "1",
				  EVENTS_USER("a;b\\nc\xc2\x9b") "," EVENTS_USER("\\u0000x")));
	events_command("folded", events_file, NULL);
	folds("w\\x1b[2J;\\x00x;a:b\\x0ac\\xc2\\x9b 1\n");
}

/* One broken line spoils no other one, is named by its place, and shows in the exit status. */
static void test_faulty_lines_are_named(void **state)
{
	events_write("{\"v\":x\n" EVENTS_STACK(
		"1", "during", "web", "3", "300",
		EVENTS_USER("leaf")) "\n{\"v\":1,\"type\":\"news\",\"x\":[1,2]}\n"
				     "{\"v\":1,\"type\":\"news\",\"x\":[1,2}\n" EVENTS_HEAD(
					     "stack", "1") ",\"count\":\"3\"}\n");
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FAILED);
	assert_string_equal(events_out, "web;leaf 3\n");
	assert_non_null(strstr(events_err, ":1:6: "));
	assert_null(strstr(events_err, ":4:"));
	assert_non_null(strstr(events_err, ":5:30: x: want , or ] here\n"));
	assert_non_null(strstr(events_err, ": count: want a whole number\n"));
}

static void test_many_faults_are_counted(void **state)
{
	char text[7 * 25 + 1] = { 0 };

	for (int i = 0; i < 25; i++)
		memcpy(text + 7 * i, "{\"v\":x\n", 7);
	events_write(text);
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FAILED);
	assert_non_null(strstr(events_err, ":10:6: "));
	assert_null(strstr(events_err, ":11:6:"));
	assert_non_null(strstr(events_err, "trocar: 25 faults in all"));
}

static void test_missing_keys_are_named(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"type\":\"stack\"}", "want version 1: the key v" },
		{ "{\"v\":2,\"type\":\"stack\"}", "want version 1: the key v" },
		{ "{\"v\":1}", "want an event line, with the key type" },
		{ "{\"v\":1,\"type\":\"stack\"}", "want the key ts" },
		{ "{\"v\":1,\"type\":\"stack\",\"ts\":\"2026-11-21\"}", "want the key session" },
		{ EVENTS_HEAD("stack", "1") "}", "want the key frames" },
		{ EVENTS_HEAD("stack", "1") ",\"frames\":[]}",
		  "want the keys count and weight_ns" },
		{ EVENTS_HEAD("stack", "1") ",\"frames\":[],\"count\":1,\"weight_ns\":1}",
		  "want the keys signal, phase and comm" },
		{ EVENTS_HEAD("stack", "1") ",\"frames\":[{\"fn\":\"a\"}]}",
		  "want the key kind in every frame" },
		{ EVENTS_HEAD("stack", "1") ",\"frames\":[],\"count\":1,\"weight_ns\":1,\"part\":3,"
					    "\"parts\":2,\"stack_id\":1}",
		  "want the keys stack_id and part, up to parts" },
		{ EVENTS_HEAD("stack",
			      "1") ",\"frames\":[],\"count\":1,\"weight_ns\":1,"
				   "\"signal\":\"oncpu\",\"phase\":\"after\",\"comm\":\"a\"}",
		  "want the phase before, onset or during" },
	};
	char line[1024];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		snprintf(line, sizeof(line), "%s\n", cases[i][0]);
		events_write(line);
		assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FAILED);
		assert_non_null(strstr(events_err, cases[i][1]));
	}
}

static void test_cut_last_line_is_passed_over(void **state)
{
	events_write(EVENTS_STACK("1", "during", "web", "3", "300",
				  EVENTS_USER("leaf")) "{\"v\":1,\"type\":\"sta");
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;leaf 3\n");
	assert_non_null(strstr(events_err, ":2: the last line is cut: passed over\n"));
}

/* A key has the meaning of its line's type: another type's may be of another form. */
static void test_keys_belong_to_types(void **state)
{
	events_write(
		EVENTS_HEAD("session.end", "1") ",\"quality\":{\"complete\":1},\"count\":[]}\n" EVENTS_HEAD(
			"pressure",
			"1") ",\"signal\":3,\"headline\":[]}\n" EVENTS_STACK("1", "during", "web",
									     "3", "300",
									     EVENTS_USER("leaf")));
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	folds("web;leaf 3\n");
}

/* Log pipelines sort keys and put blanks in: it is the same line. */
static void test_order_of_keys_is_free(void **state)
{
	events_write(
		"{ \"comm\": \"web\", \"count\": 2, \"frames\": [ {\"kind\":\"user\", \"fn\":\"f\"} ],"
		" \"phase\": \"during\", \"session\": \"0000000000000001\", \"signal\": \"oncpu\","
		" \"ts\": \"2026-11-21T15:59:01Z\", \"type\": \"stack\", \"v\": 1, "
		"\"weight_ns\": 9 }\n");
	assert_int_equal(events_command("folded", events_file, "--comm", "web", NULL),
			 COMMAND_FINE);
	folds("web;f 2\n");
	events_command("folded", events_file, "--comm", "other", NULL);
	assert_string_equal(events_out, "");
}

#define PART(part, extra, frames)                                                     \
	EVENTS_HEAD("stack", "1")                                                     \
	",\"signal\":\"oncpu\",\"phase\":\"during\",\"pid\":7,\"comm\":\"web\"" extra \
	",\"frames\":[" frames "],\"stack_id\":17,\"part\":" part ",\"parts\":3}\n"
#define FIRST PART("1", ",\"count\":2,\"weight_ns\":200", EVENTS_USER("a"))

static void test_parts_become_one_stack(void **state)
{
	events_write(FIRST PART("2", "", EVENTS_USER("b"))
			     EVENTS_STACK("2", "during", "web", "3", "300", EVENTS_USER("leaf"))
				     PART("3", "", EVENTS_USER("c")));
	assert_int_equal(events_command("folded", "--all", events_file, NULL), COMMAND_FINE);
	folds("rule1;web;c;b;a 2\nrule2;web;leaf 3\n");
}

/* Distinct names without end meet a wall with a number, not the machine's. */
static void test_memory_has_a_wall(void **state)
{
	_cleanup_free_ char *lines = NULL;
	size_t bytes;
	FILE *file = open_memstream(&lines, &bytes);

	for (int i = 0; i < 20000; i++)
		fprintf(file,
			EVENTS_HEAD("stack",
				    "1") ",\"signal\":\"oncpu\",\"phase\":\"during\",\"comm\":"
					 "\"web\",\"count\":1,\"weight_ns\":1,\"frames\":[{"
					 "\"fn\":\"f%d\",\"kind\":\"user\"}]}\n",
			i);
	fclose(file);
	events_write_n(lines, bytes);
	assert_int_equal(events_command("folded", events_file, "--memory-mib", "1", NULL),
			 COMMAND_FAILED);
	assert_non_null(strstr(events_err, "need more than 1 MiB"));
	assert_non_null(strstr(events_err, "--memory-mib"));
	assert_string_equal(events_out, "");
	assert_int_equal(events_command("folded", events_file, "--memory-mib", "100", NULL),
			 COMMAND_FINE);
}

static void test_counts_do_not_wrap(void **state)
{
	_cleanup_free_ char *lines = NULL;
	size_t bytes;
	FILE *file = open_memstream(&lines, &bytes);

	for (int i = 0; i < 2050; i++)
		fprintf(file,
			EVENTS_HEAD(
				"stack",
				"1") ",\"mono_ns\":%d,\"signal\":\"oncpu\",\"phase\":\"during\","
				     "\"comm\":\"web\",\"count\":9007199254740992,"
				     "\"weight_ns\":1,\"frames\":[]}\n",
			i + 1);
	fclose(file);
	events_write_n(lines, bytes);
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	folds("web;[no frames] 18446744073709551615\n");
}

/* Frames that are the same up to the end of the first object in them are not the same frame. */
static void test_objects_in_frames(void **state)
{
#define PLACED(fn) "{\"source\":{\"file\":\"/f.c\",\"line\":1},\"fn\":\"" fn "\",\"kind\":\"user\"}"
	events_write(EVENTS_STACK("1", "during", "c", "1", "1", PLACED("a") "," PLACED("b"))
			     EVENTS_STACK("1", "during", "c", "2", "2", PLACED("b") "," PLACED("a"))
				     EVENTS_STACK("1", "during", "c", "4", "4", PLACED("b")));
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "c;a;b 2\nc;b 4\nc;b;a 1\n");
	/* What is left of one is no frame. */
	events_write(EVENTS_STACK("1", "during", "c", "1", "1", PLACED("a")) EVENTS_STACK(
		"1", "during", "c", "1", "1", ",\"fn\":\"a\",\"kind\":\"user\"}"));
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FAILED);
	assert_string_equal(events_out, "c;a 1\n");
}

UNIT_TESTS(folded)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(sums_by_stack),
		TEST(one_session),
		TEST(rates),
		TEST(selects),
		TEST(wall),
		TEST(words_that_mean_nothing_are_refused),
		TEST(stands_on_what_is_asked_for),
		TEST(what_ran_alone),
		TEST(names_from_outside_are_tame),
		TEST(faulty_lines_are_named),
		TEST(many_faults_are_counted),
		TEST(missing_keys_are_named),
		TEST(cut_last_line_is_passed_over),
		TEST(keys_belong_to_types),
		TEST(order_of_keys_is_free),
		TEST(parts_become_one_stack),
		TEST(memory_has_a_wall),
		TEST(counts_do_not_wrap),
		TEST(objects_in_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
