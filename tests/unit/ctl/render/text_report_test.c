/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <stdio.h>
#include <string.h>

#include "tests/unit/ctl/events_testing.h"

#define PRESSURE                                                                                     \
	EVENTS_HEAD("pressure", "1")                                                                 \
	",\"resource\":\"cpu\",\"kind\":\"some\",\"stall_ms\":434,\"threshold_ms\":400,"             \
	"\"window_ms\":1000,\"measured_ms\":1099,\"before\":{\"some\":{\"avg10\":1.5,\"avg60\":0.2," \
	"\"avg300\":0.1,\"total_us\":1000}},\"now\":{\"some\":{\"avg10\":7.25,\"avg60\":1,"          \
	"\"avg300\":0.3,\"total_us\":435000}}}\n"
#define STACKS                                                                            \
	EVENTS_STACK("1", "before", "web", "1", "1000000",                                \
		     EVENTS_USER("quiet") "," EVENTS_USER("main"))                        \
	EVENTS_STACK("1", "during", "web", "3", "3000000",                                \
		     EVENTS_USER("spin") "," EVENTS_USER("spin") "," EVENTS_USER("main")) \
	EVENTS_STACK("1", "during", "log", "1", "1000000", EVENTS_USER("main"))

static void has(const char *what)
{
	if (!strstr(events_out, what))
		fail_msg("no %s in: %s", what, events_out);
}

static void test_whole_session(void **state)
{
	events_write(PRESSURE EVENTS_START("1") STACKS EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_err, "");
	has("/c/1 stalled on cpu for 434 ms\n"
	    "session 0000000000000001, rule rule1, 2026-11-21T15:59:01 UTC, /c/1\n"
	    "before: 1.0 s, during: 2.0 s\n"
	    "\nquality: partial, 1 of 10 samples was lost\n"
	    "\nsymptom: the kernel reports that its tasks stalled on cpu (some) for 434 ms in a "
	    "window of 1.0 s; its rule asks for at least 400 ms in one window of 1.0 s\n"
	    "\npressure: as the kernel averages it\n");
	has("  before          some  1.5      0.2      0.1       1 ms\n"
	    "  at the trigger  some  7.2      1.0      0.3       435 ms\n"
	    "  at the end      some  12.3     2.3      0.5       2.6 s\n");
	/* spin called itself: 75 % in it, not 150. main was in all. */
	has("  DURING   BEFORE   CHANGE  SELF     FUNCTION  MODULE\n"
	    "   75.0 %    0.0 %  =        75.0 %  spin      a\n"
	    "  100.0 %  100.0 %  =        25.0 %  main      a\n"
	    "    0.0 %  100.0 %  =         0.0 %  quiet     a\n"
	    "  CHANGE is of their time per second; = may be chance\n");
	has("\nfunctions: 4 samples during, 1 before; the busiest first, with the kernel's "
	    "work for them\n"
	    "  fewer than 30 samples during: the percentages are rough\n");
	has("\ncall paths: where its threads ran, the heaviest first\n"
	    "   75.0 %  spin (2) < main\n"
	    "   25.0 %  main\n"
	    "\nthreads: by name and process\n"
	    "  DURING  SHARE    BEFORE  SAMPLES  PID  THREADS  PROGRAM\n"
	    "  3 ms     75.0 %  1 ms    4        7    web      /bin/web\n"
	    "  1 ms     25.0 %  0 s     1        7    log      /bin/log\n"
	    "\nledger: what was attempted, emitted and lost\n"
	    "  oncpu: 10 attempted, 9 emitted, lost: ring full 1; expected during: 8\n"
	    "  without names: 3 frames of /lib/libc.so.6 (no_symbol)\n");
}

#define HELD(reason, more)                                                                        \
	EVENTS_HEAD("trigger.held", "1")                                                          \
	",\"trigger\":\"pressure\",\"reason\":\"" reason "\",\"retry_ms\":7,\"resource\":\"io\"," \
	"\"kind\":\"some\",\"stall_ms\":200" more "}\n"

/* What no session began for: an outage in the cooldown of a blip stands above the blip's stacks. */
static void test_held(void **state)
{
	events_write(HELD("cooldown", "") EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "held back in")); /* of an unknown one so far */
	has("\nbesides the sessions:\n  held back (cooldown): 1 trigger, io, in /c/1, stalled for 200 ms, "
	    "at most 200 ms at once\n");
	events_write(EVENTS_HEAD(
		"session.end",
		"1") ",\"held\":[{\"trigger\":\"pressure\",\"resource\":\"memory\",\"triggers\":1,"
		     "\"largest_ms\":90,\"sum_ms\":90},{\"trigger\":\"exec\",\"triggers\":4}]}\n" HELD(
			     "cooldown", "") HELD("session_running", "")
			     HELD("cooldown",
				  ",\"repeats\":8,\"largest_ms\":2000,\"sum_ms\":11800"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\n  held back while it ran: memory, 1 trigger, stalled for 90 ms, at most 90 ms at "
	    "once\n"
	    "  held back while it ran: exec, 4 triggers\n"
	    "  held back in its cooldown: io, 9 triggers, stalled for 12.0 s, at most 2.0 s at "
	    "once\n");
}

#define STALLED(S, ms, more)                                                                \
	EVENTS_HEAD("session.end", S)                                                       \
	",\"stalled_ms\":" ms more ",\"headline\":\"/c/" S " stalled on cpu for 1 ms of 2 " \
	"ms (some of it); of its time on CPU 9 % was in f\"}\n"

/* A long stall that was held back, or came later, stands before the short one that came first. */
static void test_longest_first(void **state)
{
	events_write(EVENTS_START("1") STALLED("1", "180", "") EVENTS_START("2") STALLED(
		"2", "600",
		",\"cause\":\"CPU quota\\u001b\",\"held\":[{\"trigger\":\"pressure\",\"resource\":"
		"\"io\",\"triggers\":7,\"largest_ms\":400,\"sum_ms\":2700},{\"trigger\":\"exec\","
		"\"triggers\":4}]") HELD("cooldown", ""));
	assert_int_equal(events_command("report", "--full", "--all", events_file, NULL),
			 COMMAND_FINE);
	assert_ptr_equal(
		strstr(events_out,
		       "2 sessions; what stalled, the longest first:\n"
		       "  2.7 s on io in /c/2 (held back, in no session)\n"
		       "  600 ms on cpu in /c/2 (session 0000000000000002): CPU quota\\x1b\n"
		       "  200 ms on io in /c/1 (held back, in no session)\n"
		       "  180 ms on cpu in /c/1 (session 0000000000000001): of its time on CPU 9 % "
		       "was in f\n"
		       "\n----\n\n/c/1 stalled"),
		events_out);
}

/* A session that still runs counts by its trigger; one alone needs no list. */
static void test_stalls_of_running(void **state)
{
	events_write(EVENTS_START("1") STALLED("1", "180", "") HELD("cooldown", "")
			     EVENTS_START("2"));
	events_command("report", "--full", events_file, NULL);
	has("  434 ms on cpu in /c/2 (session 0000000000000002)\n");
	events_command("report", "--full", "--session", "0000000000000001", events_file, NULL);
	assert_null(strstr(events_out, "longest first"));
}

#define NEIGHBOUR(more) EVENTS_HEAD("neighbour", "1") ",\"signal\":\"neighbours\"" more "}\n"
#define END_CPU(others, own, idle)                                                              \
	EVENTS_HEAD("session.end", "1")                                                         \
	",\"duration_ms\":2000,\"pre_ms\":0,\"onset_ms\":0,\"verdict\":\"complete\","           \
	"\"headline\":\"stalled\",\"cpu\":{\"cpus\":2,\"own_ms\":" own ",\"others_ms\":" others \
	",\"idle_ms\":" idle "}}\n"

/* The users of the CPUs, in CPUs. */
static void test_neighbours(void **state)
{
	events_write(NEIGHBOUR(",\"neighbour\":\"/batch.slice\",\"neighbour_id\":9,"
			       "\"neighbour_uid\":61234,\"neighbour_cgroups\":600,"
			       "\"cpu_ms\":3200,\"share\":0.8,\"comm\":\"stress\"")
			     NEIGHBOUR(",\"neighbour\":null,\"neighbour_reason\":\"it ended\","
				       "\"name\":\"run-r1.scope\",\"name_unverified\":true,"
				       "\"neighbour_id\":8,"
				       "\"cpu_ms\":200,\"share\":0.05,\"comm\":\"cc1\"")
				     NEIGHBOUR(",\"neighbour\":\"/a\",\"neighbour_id\":7,"
					       "\"cpu_ms\":90,\"share\":0.02,\"comm\":\"a\"")
					     NEIGHBOUR(",\"others\":2,\"cpu_ms\":10,\"share\":0")
						     END_CPU("3500", "400", "100"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nneighbours: other cgroups had /batch.slice (uid 61234, 600 cgroups) 1.6 of 2.0 CPUs "
	    "(stress), (no path, unverified name) run-r1.scope 0.1 (cc1), 3 others 0.1; this one 0.2; idle 0.1\n");
	events_write(END_CPU("20", "400", "2580,\"unseen_ms\":1000"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("; this one 0.2; idle 1.3; idle or unseen, without a tick 0.5\n");
	events_write(END_CPU("20", "400", "3580"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nneighbours: other cgroups had 0.0 of 2.0 CPUs; this one 0.2; idle 1.8\n");
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "other cgroups"));
}

#define POOL(more) EVENTS_HEAD("pool", "1") ",\"signal\":\"pools\"" more "}\n"

/* A row for each pool; its bar is for terminals (tests/terminal). */
static void test_pools(void **state)
{
	events_write(
		POOL(",\"pid\":77,\"start_ns\":5,\"pool\":\"w\\u001brk-\",\"threads\":8,"
		     "\"wall_ns\":6000000000,\"running_ns\":1000000000,\"queue_ns\":200000000,"
		     "\"blocked_ns\":{\"lock\":3000000000,\"idle\":1600000000,\"new\":1},"
		     "\"unaccounted_ns\":200000000,\"open_ns\":0")
			POOL(",\"others\":4,\"threads\":4,\"wall_ns\":0,\"running_ns\":0,"
			     "\"queue_ns\":0,\"blocked_ns\":{},\"unaccounted_ns\":0,\"open_ns\":0")
				EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\naccount: the time of the threads, by state\n"
	    "  MOST OF IT                          SUM    THREADS  PID  POOL\n"
	    "  lock 50 %, idle 27 %, running 17 %  6.0 s  8        77   w\\x1brk-\n");
	has(" 4        -    4 more pools\n");
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "time of the threads"));
}

#define HISTOGRAM(more) EVENTS_HEAD("histogram", "1") ",\"signal\":\"runq\"" more "}\n"
#define BEHIND(more)	EVENTS_HEAD("neighbour", "1") ",\"signal\":\"runq\"" more "}\n"

/* A row for each octave of all threads' waits, and the users of the CPU by name. */
static void test_queue(void **state)
{
	events_write(
		HISTOGRAM(
			",\"key\":{\"of\":\"all\"},\"unit\":\"ns\",\"buckets\":[[1048576,10],[1572864,4],"
			"[2097152,16],[null,1]],\"count\":31,\"sum\":812000000,\"p50\":2097152,"
			"\"p90\":2097152,\"p99\":null,\"longest\":[{\"wait_ns\":7000000000,"
			"\"tid\":81,\"comm\":\"w\\u001b\"}]")
			HISTOGRAM(",\"key\":{\"of\":\"pool\"},\"buckets\":[[1024,9999]]") BEHIND(
				",\"neighbour\":\"/batch\",\"neighbour_uid\":5,"
				"\"queue_ms\":640") BEHIND(",\"neighbour\":null,\"queue_ms\":50")
				BEHIND(",\"others\":3,\"queue_ms\":1") EVENTS_HEAD(
					"session.end",
					"1") ",\"duration_ms\":2000,\"runq\":{\"wait_ms\":812,"
					     "\"own_ms\":120,\"idle_ms\":0,\"moved_ms\":2,\"unseen_ms\":9},"
					     "\"headline\":\"h\"}\n");
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nwaits for a CPU: 31, 812 ms in all; half of them at most 2 ms, 99 of 100 longer\n"
	    "  UP TO   WAITS\n"
	    "  1 ms    10\n"
	    "  2 ms    20\n"
	    "  longer  1\n"
	    "  behind: /batch (uid 5) 640 ms, (a cgroup without path) 50 ms, its cgroup's tasks 120 ms, "
	    "not known 9 ms\n"
	    "  longest: 7.0 s w\\x1b (81)\n");
	events_write(EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_out, "waits for a CPU"));
}

#define RAN	   ",\"cpu_samples\":{\"all\":20,\"user\":15,\"calls\":5}}\n"
#define CALL(more) EVENTS_HEAD("syscall", "1") ",\"signal\":\"syscall\"" more "}\n"

/*
 * The table has the CPU time of a call next to its waits; the line after it the CPU time elsewhere.
 */
static void test_calls(void **state)
{
	events_write(CALL(
		",\"call\":\"futex\",\"number\":202,\"waits\":12,\"open\":1,\"wait_ns\":4000000000,"
		"\"cpu_samples\":5,\"cpu_share\":0.25,\"p50_ns\":2097152,\"p90_ns\":null,"
		"\"p99_ns\":null,"
		"\"longest\":{\"wait_ns\":3000000,\"open\":true,\"pid\":7,\"tid\":81,\"comm\":\"w\"}")
			     CALL(",\"call\":null,\"call_reason\":\"outside\",\"waits\":1,\"open\":0,"
				  "\"wait_ns\":4000") EVENTS_HEAD("session.end", "1") RAN);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nsystem calls: that threads waited in, or ran in\n"
	    "  SYSTEM CALL  ON CPU  WAITED  WAITS  OPEN  P50   P99     LONGEST  THREAD  TID\n"
	    "  futex        25.0 %  4.0 s   12     1     2 ms  longer  3 ms     w       81\n"
	    "  outside      -       4 us    1      0     -     -       -        -       -\n"
	    "  ON CPU is of 20 samples, which is few, 75.0 % in user mode, 25.0 % in system ");
}

/* The facts stand above the stacks: counters that moved, and limits that are there. */
static void test_facts(void **state)
{
	events_write(EVENTS_START("1") STACKS EVENTS_HEAD(
		"facts",
		"1") ",\"source\":\"cpu\",\"from\":\"v1\",\"from_cgroup\":\"/v1\",\"limits\":{"
		     "\"quota_pct\":40.0,\"period_us\":100000},\"limits_end\":{"
		     "\"quota_pct\":null,\"period_us\":100000},\"phases\":{\"before\":{\"ms\":5000,"
		     "\"usage_ms\":900,\"nr_throttled\":0},\"during\":{\"ms\":2000,\"usage_ms\":800,"
		     "\"nr_throttled\":20,\"nr_bursts\":0}}}\n" EVENTS_HEAD(
			     "facts",
			     "1") ",\"source\":\"io\",\"from\":\"v2\",\"limits\":{\"devices\":[]},\"phases\":{"
				  "\"during\":{\"ms\":2000,\"devices\":[{\"device\":\"sda\",\"rbytes\":8388608,"
				  "\"wios\":0}]}}}\n" EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_err, "");
	has("\nfacts: the kernel's own counters that moved\n"
	    "  FACT              BEFORE 5.0 s  ONSET  DURING 2.0 s\n"
	    "  cpu usage         900 ms        -      800 ms\n"
	    "  cpu nr throttled  0             -      20\n"
	    "  io sda rbytes     -             -      8.0 MiB\n"
	    "  limits of cpu in v1 cgroup /v1: quota pct 40.0\n"
	    "  limits of cpu at the end: none\n");
	/* The name of a device is no text. */
	events_write(EVENTS_HEAD("facts", "1") ",\"source\":\"io\",\"phases\":{\"during\":{"
					       "\"ms\":2000,\"devices\":[{\"device\":8,"
					       "\"rbytes\":4096}]}}}\n" EVENTS_END("1"));
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("\nfacts: ");
}

/* A session of CPU time that fell has no pressure: the window that was measured counts. */
static void test_quiet(void **state)
{
	events_write(EVENTS_START("1") STALLED("1", "400", "") EVENTS_HEAD(
		"session.start",
		"2") ",\"reason\":{\"quiet\":{\"share_pct\":2.000,\"cpu_ms\":30,\"mean_cpu_ms\":1500,"
		     "\"measured_ms\":5000,\"window_ms\":5000}}}\n" EVENTS_HEAD(
			     "session.end", "2") ",\"headline\":\"/c/2 used 2 %\"}\n");
	events_command("report", "--full", events_file, NULL);
	has("2 sessions; what stalled, the longest first:\n"
	    "  5.0 s quiet in /c/2 (session 0000000000000002)\n"
	    "  400 ms on cpu in /c/1 (session 0000000000000001)");
}

/* Nor has one of threads that were stuck: for so long they all were. */
static void test_stuck(void **state)
{
	events_write(EVENTS_START("1") STALLED("1", "400", "") EVENTS_HEAD(
		"session.start",
		"2") ",\"reason\":{\"stuck\":{\"share_pct\":60.000,\"threads\":6,\"of_threads\":10,"
		     "\"wait\":\"lock\",\"measured_ms\":7000}}}\n" EVENTS_HEAD(
			     "session.end", "2") ",\"headline\":\"/c/2 has 6\"}\n");
	events_command("report", "--full", events_file, NULL);
	has("2 sessions; what stalled, the longest first:\n"
	    "  7.0 s stuck in /c/2 (session 0000000000000002)\n"
	    "  400 ms on cpu in /c/1 (session 0000000000000001)");
}

/* Sessions of one cgroup by one resource are one stall, with the held triggers between them. */
static void test_stalls_add_up(void **state)
{
	events_write(EVENTS_START("1") STALLED("1", "400", "") HELD(
		"cooldown",
		"") "{\"v\":1,\"type\":\"session.start\",\"ts\":\"2026-11-21T15:59:09Z\","
		    "\"session\":\"000000000000000a\",\"rule\":\"rule1\",\"cgroup\":\"/c/1\","
		    "\"reason\":{\"pressure\":{\"resource\":\"cpu\",\"stall_ms\":100}}}\n"
		    "{\"v\":1,\"type\":\"session.end\",\"ts\":\"2026-11-21T15:59:09Z\","
		    "\"session\":\"000000000000000a\",\"rule\":\"rule1\",\"cgroup\":\"/c/1\","
		    "\"stalled_ms\":300,\"held\":[{\"resource\":\"cpu\",\"sum_ms\":50}]}\n");
	events_command("report", "--full", events_file, NULL);
	has("2 sessions; what stalled, the longest first:\n"
	    "  750 ms on cpu in /c/1 (2 sessions, the longest is 0000000000000001; 50 ms of it held "
	    "back): of its time on CPU 9 % was in f\n"
	    "  200 ms on io in /c/1 (held back, in no session)\n");
}

/* How much of the stall the stacks explain; many samples need no warning. */
static void test_explained(void **state)
{
	events_write(
		EVENTS_STACK("1", "during", "web", "30", "3000000", EVENTS_USER("spin"))
			EVENTS_HEAD(
				"session.end",
				"1") ",\"duration_ms\":2000,\"pre_ms\":1000,\"onset_ms\":0,"
				     "\"verdict\":\"partial\",\"verdict_reason\":\"what waited\","
				     "\"stalled_ms\":4500,\"explained\":0.033,"
				     "\"headline\":\"stalled\"}\n");
	events_command("report", "--full", events_file, NULL);
	has("\nquality: partial, what waited\n"
	    "  explained: 3 % of 4.5 s that were stalled\n");
	assert_null(strstr(events_out, "rough"));
}

/* Waits are before the stacks, idle ones last, as in session.end. */
static void test_waits(void **state)
{
	events_write(
		EVENTS_STACK("1", "during", "web", "30", "3000000", EVENTS_USER("spin")) EVENTS_HEAD(
			"session.end",
			"1") ",\"duration_ms\":2000,\"pre_ms\":1000,\"onset_ms\":0,"
			     "\"verdict\":\"complete\",\"looks\":{\"passes\":41},"
			     "\"waits\":[{\"fn\":\"take_lock\",\"module\":\"/web\","
			     "\"state\":\"blocked\",\"wait\":\"lock\",\"idle\":false,"
			     "\"on\":{\"what\":\"file\",\"name\":\"journal\"},"
			     "\"callers\":[\"flush\",\"serve\"],"
			     "\"weight_ms\":1900,\"threads\":1},"
			     "{\"fn\":\"next_job\",\"module\":\"/web\","
			     "\"state\":\"blocked\",\"wait\":\"lock\",\"idle\":false,"
			     "\"condition\":true,\"weight_ms\":900,\"threads\":3,"
			     "\"on\":{\"what\":\"socket\",\"peer\":\"10.0.0.5:5432\"}},"
			     "{\"fn\":null,\"module\":null,\"state\":\"runnable\","
			     "\"idle\":false,\"weight_ms\":7,\"threads\":2},"
			     "{\"fn\":\"serve\",\"module\":\"/web\",\"state\":\"blocked\","
			     "\"wait\":\"idle\",\"idle\":true,\"weight_ms\":8000,"
			     "\"threads\":4,\"on\":{\"what\":\"poll\",\"opened\":0,"
			     "\"path\":\"/run/bus\",\"unix_opened\":1,\"items\":3,"
			     "\"kinds\":{\"unix\":2,\"timerfd\":1}}},"
			     "{\"fn\":\"query\",\"module\":\"/web\",\"state\":\"blocked\","
			     "\"wait\":\"socket\",\"idle\":false,\"weight_ms\":700,"
			     "\"threads\":1,\"on\":{\"what\":\"poll\",\"asked\":1,"
			     "\"path\":\"/run/pg.sock\",\"kinds\":{\"unix\":1}}},"
			     "{\"fn\":\"log\",\"module\":\"/web\",\"state\":\"blocked\","
			     "\"wait\":\"socket\",\"idle\":false,\"weight_ms\":600,"
			     "\"threads\":1,\"on\":{\"what\":\"socket\",\"family\":\"unix\","
			     "\"path\":\"/dev/log\"}},"
			     "{\"fn\":\"proxy\",\"module\":\"/web\",\"state\":\"blocked\","
			     "\"wait\":\"socket\",\"idle\":false,\"weight_ms\":500,"
			     "\"threads\":1,\"on\":{\"what\":\"epoll\",\"peer\":"
			     "\"10.0.0.7:8080\",\"asked\":2}}],\"headline\":\"waited\"}\n");
	events_command("report", "--full", events_file, NULL);
	has("\nwaits: of threads, in 41 sampling passes\n"
	    "  WAITED  THREADS  FOR        WHERE                      ON\n"
	    "  1.9 s   1        lock       take_lock < flush < serve  file journal\n"
	    "  900 ms  3        condition  next_job                   socket to 10.0.0.5:5432\n"
	    "  7 ms    2        for a CPU  -\n"
	    "  8.0 s   4        idle       serve                      2 unix, 1 timerfd\n"
	    "  700 ms  1        socket     query                      answers of the unix socket "
	    "/run/pg.sock\n"
	    "  600 ms  1        socket     log                        unix socket /dev/log\n"
	    "  500 ms  1        socket     proxy                      answers of 10.0.0.7:8080\n");
}

static void test_half_a_session(void **state)
{
	events_write(EVENTS_START("1") STACKS);
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FINE);
	has("This session has no end here: it still ran, or its lines were cut.\n");
	assert_null(strstr(events_out, "quality"));
	assert_null(strstr(events_out, "ledger"));
	events_write(EVENTS_END("1"));
	events_command("report", "--full", events_file, NULL);
	has("no stack of it is selected\n");
	has("quality: partial");
	events_write(EVENTS_START("1") STACKS EVENTS_END("1"));
	events_command("report", "--full", events_file, "--comm", "nobody", NULL);
	has("no stack of it is selected; there are:\n  --signal: ");
	has("\n  --comm: ");
}

static void test_sessions_one_after_the_other(void **state)
{
	events_write(STACKS EVENTS_END("1") EVENTS_END("2"));
	events_command("report", "--full", "--all", events_file, NULL);
	has("\n----\n\n/c/2 stalled");
	events_command("report", "--full", "--session", "0000000000000002", events_file, NULL);
	assert_null(strstr(events_out, "----"));
	assert_null(strstr(events_out, "/c/1"));
}

static void test_quality_and_advice(void **state)
{
	events_write(EVENTS_HEAD(
		"session.end",
		"1") ",\"stack_quality\":{\"complete\":5,\"truncated\":1,\"broken\":2,\"by_frame_pointers\":5,\"unwound\":{\"complete\":2,\"no_row\":1}},"
		     "\"modules_broken\":[{\"module\":\"/l/x\",\"samples\":2},{\"module\":\"/l/y\",\"samples\":1,"
		     "\"reason\":\"no_row\"}],\"advice\":[\"install "
		     "a\",7]}\n");
	events_command("report", "--full", events_file, NULL);
	has("  samples by how far their stacks go: 5 complete, 1 truncated, 2 broken\n"
	    "  user stacks: 5 by frame pointers; by call frame information: complete 2, no row 1\n"
	    "  stacks end too early in /l/x: 2 samples\n"
	    "  stacks end too early in /l/y: 1 sample (no_row)\n");
	has("\nquality: -\n  advice: install a\n  advice: 7\n");
}

/* An end of a session with keys of a wrong type is shown as far as it goes. */
static void test_odd_lines(void **state)
{
	events_write(
		EVENTS_HEAD("session.end", "1") ",\"ledger\":[1],\"modules_unnamed\":{},\"pressure_end\":7,\"verdict\":\"x\\u001b\"}\n" EVENTS_HEAD(
			"session.end", "2") ",\"ledger\":{\"on\\ncpu\":{\"lost\":3}},"
					    "\"modules_unnamed\":[1,null,{}]}\n");
	assert_int_equal(events_command("report", "--full", "--all", events_file, NULL),
			 COMMAND_FINE);
	has("quality: x\\x1b\n");
	has("  on\\x0acpu: - attempted, - emitted, lost: nothing\n");
	has("  without names: - frames of - (-)\n");
}

UNIT_TESTS(text_report)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, events_setup, events_teardown)
	const struct CMUnitTest tests[] = {
		TEST(whole_session),
		TEST(half_a_session),
		TEST(sessions_one_after_the_other),
		TEST(quality_and_advice),
		TEST(odd_lines),
		TEST(held),
		TEST(explained),
		TEST(longest_first),
		TEST(stalls_of_running),
		TEST(neighbours),
		TEST(facts),
		TEST(stalls_add_up),
		TEST(quiet),
		TEST(stuck),
		TEST(waits),
		TEST(pools),
		TEST(queue),
		TEST(calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
