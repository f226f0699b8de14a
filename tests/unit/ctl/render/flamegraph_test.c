/* SPDX-License-Identifier: BSD-2-Clause */
/* trocar flamegraph and trocar diff, by their text; tests/pictures looks at them. */
#include "tests/unit/runner/unit.h"

#include "tests/unit/ctl/events_testing.h"

#define STACKS                                                    \
	EVENTS_START("1")                                         \
	EVENTS_STACK("1", "before", "web", "3", "300000000",      \
		     EVENTS_USER("leaf") "," EVENTS_USER("main")) \
	EVENTS_STACK("1", "during", "web", "4", "100000000",      \
		     EVENTS_KERNEL("read") "," EVENTS_USER("main"))
#define ONE STACKS EVENTS_END("1")

static unsigned int count(const char *what)
{
	unsigned int n = 0;

	for (const char *at = events_out; (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %.20000s", what, events_out);
}

static void test_phases_stand_side_by_side(void **state)
{
	events_write(ONE);
	assert_int_equal(events_command("flamegraph", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_err, "");
	assert_int_equal(count("<g class=\"panel\""), 2);
	has("<title>/c/1 stalled on cpu for 434 ms</title>");
	has(">before: 1.0 s, 300 ms on CPU (0.30 CPUs)<");
	has(">during: 2.0 s, 100 ms on CPU (0.05 CPUs)<");
	has("<title>read\nbefore: 0 s, 0.0 %\nduring: 100 ms, 100.0 %, itself 100 ms</title><rect "
	    "class=\"k");
	has("session 0000000000000001, rule rule1, verdict partial<");
	/* main is wide in both. */
	assert_int_equal(count("<title>main\n"), 2);
}

/*
 * Colours show the threads' state, where all of them had the same; the legend names those that are
 * there.
 */
static void test_states(void **state)
{
	events_write(EVENTS_STACK("1", "during", "web", "4", "100000000", EVENTS_USER("main"))
			     EVENTS_WAIT("1", "during", "web", "3", "200000000",
					 EVENTS_BLOCKED("lock", "false"),
					 EVENTS_USER("take") "," EVENTS_USER("main"))
				     EVENTS_WAIT("1", "during", "web", "3", "300000000",
						 EVENTS_BLOCKED("sleep", "true"),
						 EVENTS_USER("nap") "," EVENTS_USER("main")));
	assert_int_equal(events_command("flamegraph", "--signal", "wall", events_file, NULL), 0);
	assert_string_equal(events_err, "");
	has("<title>main\nbefore: 0 s, 0.0 %\nduring: 600 ms, 100.0 %</title><rect class=\"qx ");
	has("<title>take\nbefore: 0 s, 0.0 %\nduring: 200 ms, 33.3 %</title><rect class=\"ql ");
	has("<title>[on CPU]\nbefore: 0 s, 0.0 %\nduring: 100 ms, 16.7 %, itself 100 ms</title><rect "
	    "class=\"qc ");
	has(">lock</text>");
	has(">several of them</text>");
	has("10 samples, on and off CPU");
	assert_int_equal(count(">socket</text>"), 0);
	assert_int_equal(count(">kernel</text>"), 0);
	assert_int_equal(events_command("flamegraph", "--signal", "offcpu", events_file, NULL), 0);
	has(">lock</text>");
	has(">6 off-CPU samples, ");
	has("<title>[lock]\nbefore: 0 s, 0.0 %\nduring: 200 ms, 40.0 %, itself 200 ms</title><rect "
	    "class=\"ql ");
	assert_int_equal(count(">on CPU</text>"), 0);
	/* What ran alone is coloured by kind of code, as before. */
	assert_int_equal(events_command("flamegraph", "--signal", "oncpu", events_file, NULL), 0);
	has(">kernel</text>");
	assert_int_equal(count("class=\"qc"), 0);
}

/* Threads that only waited make an empty picture with a message, alone and compared. */
static void test_idle_threads_fill_no_picture(void **state)
{
	const char *const commands[][2] = { { "flamegraph", NULL },
					    { "diff", "--svg" },
					    { "diff", NULL } };

	events_write(EVENTS_START("1") EVENTS_WAIT("1", "during", "web", "3", "300000000",
						   EVENTS_BLOCKED("idle", "true"),
						   EVENTS_USER("nap")) EVENTS_END("1"));
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		assert_int_equal(events_command(commands[i][0], events_file, commands[i][1], NULL),
				 COMMAND_FINE);
		assert_non_null(strstr(events_err, "no thread ran on a CPU"));
		assert_int_equal(count("nap"), 0);
		assert_int_equal(count("<svg "), i < 2);
		assert_int_equal(count("nothing was sampled"), i < 2 ? i + 1 : 0);
	}
}

/* The picture must show that callers are missing in it. */
/* A session of a second of calm time, half a second of onset, two during. */
#define PHASED                                                                             \
	EVENTS_STACK("1", "before", "web", "3", "300000000", EVENTS_USER("calm"))          \
	EVENTS_STACK("1", "onset", "web", "2", "200000000", EVENTS_USER("rush"))           \
	EVENTS_STACK("1", "during", "web", "4", "100000000", EVENTS_USER("stall"))         \
	EVENTS_HEAD("session.end", "1")                                                    \
	",\"duration_ms\":2000,\"pre_ms\":1500,\"onset_ms\":500,\"verdict\":\"complete\"," \
	"\"headline\":\"stalled\"}\n"

/* During is compared with the calm time; the onset, in which the stall was measured, is neither. */
static void test_during_is_compared_with_calm(void **state)
{
	events_write(PHASED);
	assert_int_equal(events_command("flamegraph", events_file, NULL), COMMAND_FINE);
	has(">before: 1.0 s, 300 ms on CPU (0.30 CPUs)<");
	has(">during: 2.0 s, 100 ms on CPU (0.05 CPUs)<");
	has(">7 samples, ");
	assert_int_equal(count("rush"), 0);
	events_command("flamegraph", events_file, "--phase", "onset", NULL);
	assert_int_equal(count("<g class=\"panel\""), 1);
	has(">onset: 0.5 s, 200 ms on CPU (0.40 CPUs)<");
	events_command("diff", events_file, NULL);
	assert_string_equal(events_out, "web;calm 300000 0\nweb;stall 0 50000\n");
	assert_string_equal(events_err,
			    "trocar: in microseconds per second: before (1.0 s), during (2.0 s)\n");
	events_command("folded", events_file, "--phase", "onset", NULL);
	assert_string_equal(events_out, "web;rush 2\n");
	events_command("folded", events_file, "--count", "samples", "--by", "phase", NULL);
	assert_string_equal(events_out, "before;calm 3\nduring;stall 4\nonset;rush 2\n");
}

/* Without calm time the onset stands in its place, under its own name. */
static void test_onset_where_nothing_is_calm(void **state)
{
	events_write(
		EVENTS_STACK("1", "onset", "web", "2", "200000000",
			     EVENTS_USER("rush")) EVENTS_STACK("1", "during", "web", "4",
							       "100000000", EVENTS_USER("stall"))
			EVENTS_HEAD("session.end",
				    "1") ",\"duration_ms\":2000,\"pre_ms\":500,\"onset_ms\":500,"
					 "\"verdict\":\"complete\",\"headline\":\"stalled\"}\n");
	events_command("diff", events_file, NULL);
	assert_string_equal(events_out, "web;rush 400000 0\nweb;stall 0 50000\n");
	assert_string_equal(events_err,
			    "trocar: in microseconds per second: onset (0.5 s), during (2.0 s)\n");
	events_command("report", "--full", events_file, NULL);
	has("before: 0.0 s, onset: 0.5 s, during: 2.0 s\n"
	    "No baseline before the stall: comparing the capture with the onset.\n");
	has("functions: 4 samples during, 2 onset;");
	has("DURING   ONSET");
}

/* The report likewise. */
static void test_report_compares_with_calm(void **state)
{
	events_write(PHASED);
	events_command("report", "--full", events_file, NULL);
	has("before: 1.0 s, onset: 0.5 s, during: 2.0 s\n");
	has("functions: 4 samples during, 3 before;");
	has("  100 ms  100.0 %  300 ms  7        7    web      /bin/web\n");
	assert_int_equal(count("rush"), 0);
}

static void test_broken_stacks(void **state)
{
	events_write(EVENTS_HEAD(
		"stack",
		"1") ",\"signal\":\"oncpu\",\"phase\":\"during\",\"comm\":\"web\","
		     "\"count\":3,\"weight_ns\":3,\"quality\":\"broken\",\"frames\":[" EVENTS_USER(
			     "leaf") "]}\n" EVENTS_STACK("1", "during", "web", "4", "4",
							 EVENTS_USER("other")));
	events_command("flamegraph", events_file, NULL);
	has(">7 samples (3 without all of their callers), ");
}

static void test_one_phase_fills_the_picture(void **state)
{
	events_write(ONE);
	events_command("flamegraph", events_file, "--phase", "during", "--count", "samples", NULL);
	assert_int_equal(count("<g class=\"panel\""), 1);
	has(">during: 2.0 s, 4 samples<");
	has("width=\"1180.00\"");
	events_write(EVENTS_STACK("1", "before", "web", "3", "300", EVENTS_USER("leaf")));
	events_command("flamegraph", events_file, NULL);
	assert_int_equal(count("<g class=\"panel\""), 1);
	has(">before: ");
}

static void test_foreign_text_is_escaped(void **state)
{
	events_write(EVENTS_STACK("1", "during", "w\\u001b<a", "3", "300",
				  EVENTS_USER("]]><script>x&\\\"\\uffff")));
	events_command("flamegraph", events_file, NULL);
	has("<title>]]&gt;&lt;script&gt;x&amp;&quot;\xef\xbf\xbd\n");
	has("w\\x1b&lt;a");
	assert_int_equal(count("<script>"), 1);
	events_command("flamegraph", events_file, "--title", "<b>", NULL);
	has(">&lt;b&gt;<");
}

static void test_nothing_is_no_picture(void **state)
{
	events_write("");
	assert_int_equal(events_command("flamegraph", events_file, NULL), COMMAND_FAILED);
	assert_string_equal(events_out, "");
	assert_string_equal(events_err,
			    "trocar: there is no session in the lines that were read\n");
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("flamegraph", events_file, NULL), COMMAND_FAILED);
	assert_string_equal(events_out, "");
	assert_string_equal(events_err,
			    "trocar: the session has no stacks in the lines that were read\n");
}

/* 100 frames of which one has a 100,000th: too narrow to draw, and reported. */
static void test_narrow_frames_are_counted(void **state)
{
	events_write(EVENTS_STACK("1", "during", "web", "1", "1", EVENTS_USER("tiny"))
			     EVENTS_STACK("1", "during", "web", "1", "99999", EVENTS_USER("wide")));
	events_command("flamegraph", events_file, NULL);
	assert_int_equal(count("<title>wide\n"), 1);
	assert_int_equal(count("<title>tiny\n"), 0);
	has(">1 frame narrower than 0.02 % is not drawn. Made by trocar ");
}

static void test_difference_is_by_time(void **state)
{
	events_write(ONE);
	assert_int_equal(events_command("diff", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;main;leaf 300000 0\nweb;main;read 0 50000\n");
	assert_string_equal(events_err,
			    "trocar: in microseconds per second: before (1.0 s), during (2.0 s)\n");
	events_command("diff", events_file, "--count", "samples", NULL);
	assert_string_equal(events_out, "web;main;leaf 3000 0\nweb;main;read 0 2000\n");
}

static void test_difference_of_unknown_lengths_is_by_share(void **state)
{
	events_write(STACKS);
	events_command("diff", events_file, NULL);
	assert_string_equal(events_out, "web;main;leaf 1000000 0\nweb;main;read 0 1000000\n");
	assert_non_null(strstr(events_err, "in millionths of each side"));
}

static void test_difference_of_two_files(void **state)
{
	char other[] = "/tmp/trocar-events-XXXXXX";
	FILE *file = fdopen(mkstemp(other), "w");

	fputs(EVENTS_START("2") EVENTS_STACK("2", "during", "web", "2", "500000000",
					     EVENTS_USER("main")) EVENTS_END("2"),
	      file);
	fclose(file);
	events_write(ONE);
	events_command("diff", events_file, other, "--phase", "during", NULL);
	unlink(other);
	assert_string_equal(events_out, "web;main 0 250000\nweb;main;read 50000 0\n");
}

static void test_difference_as_a_picture(void **state)
{
	events_write(ONE);
	events_command("diff", "--svg", events_file, NULL);
	assert_int_equal(count("<g class=\"panel\""), 2);
	has("<rect class=\"m0\"");
	has("<rect class=\"w0\"");
	/* main: 300 ms in a second, then 50 ms: the second is a sixth as wide. */
	has("width=\"582.00\"");
	has("width=\"97.00\"");
}

UNIT_TESTS(flamegraph)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(phases_stand_side_by_side),
		TEST(states),
		TEST(idle_threads_fill_no_picture),
		TEST(broken_stacks),
		TEST(during_is_compared_with_calm),
		TEST(onset_where_nothing_is_calm),
		TEST(report_compares_with_calm),
		TEST(one_phase_fills_the_picture),
		TEST(foreign_text_is_escaped),
		TEST(nothing_is_no_picture),
		TEST(narrow_frames_are_counted),
		TEST(difference_is_by_time),
		TEST(difference_of_unknown_lengths_is_by_share),
		TEST(difference_of_two_files),
		TEST(difference_as_a_picture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
