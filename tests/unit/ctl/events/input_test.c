/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdbool.h>
#include <zlib.h>

#include "shared/tools/cleanup.h"
#include "tests/unit/ctl/events_testing.h"

#define LINE(type, mono, second, rest)                                                            \
	"{\"v\":1,\"type\":\"" type "\",\"ts\":\"2026-11-21T15:59:" second                        \
	".1Z\",\"mono_ns\":" mono ",\"session\":\"aa11\",\"rule\":\"api\",\"cgroup\":\"/c\"" rest \
	"}"
#define STACK(mono, second, rest)   \
	LINE("stack", mono, second, \
	     ",\"signal\":\"oncpu\",\"phase\":\"during\",\"comm\":\"web\"" rest)
#define WHOLE(mono, second, fn) \
	STACK(mono, second, ",\"count\":1,\"weight_ns\":100,\"frames\":[" EVENTS_USER(fn) "]")
#define FIRST(mono, second)                                                           \
	STACK(mono, second,                                                           \
	      ",\"stack_id\":1,\"part\":1,\"parts\":2,\"count\":1,\"weight_ns\":100," \
	      "\"frames\":[" EVENTS_USER("leaf") "]")
#define SECOND(mono, second) \
	STACK(mono, second,  \
	      ",\"stack_id\":1,\"part\":2,\"parts\":2,\"frames\":[" EVENTS_USER("main") "]")

static char other[64], third[64];

static void write_other(const char *name, const char *lines, bool packed)
{
	if (packed) {
		gzFile file = gzopen(name, "we");

		assert_int_equal(gzwrite(file, lines, (unsigned int)strlen(lines)), strlen(lines));
		assert_int_equal(gzclose(file), Z_OK);
	} else {
		_cleanup_fclose_ FILE *file = fopen(name, "we");

		fputs(lines, file);
	}
}

static int setup(void **state)
{
	if (events_setup(state) < 0)
		return -1;
	snprintf(other, sizeof(other), "%.40s.1.gz", events_file);
	snprintf(third, sizeof(third), "%.40s.2", events_file);
	return 0;
}

static int teardown(void **state)
{
	unlink(other);
	unlink(third);
	return events_teardown(state);
}

/* A stack of which a part is on each side of a rotation, and a shell that names the newest first.
 */
static void test_rotated(void **state)
{
	events_write(SECOND("3", "22") "\n" WHOLE("4", "23", "last") "\n");
	write_other(other, WHOLE("1", "20", "first") "\n" FIRST("2", "21") "\n", true);
	assert_int_equal(events_command("folded", events_file, other, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;first 1\nweb;last 1\nweb;main;leaf 1\n");
	assert_string_equal(events_err, "");
	/* Alone the newer file lacks the first part, which is reported and is no fault. */
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;last 1\n");
	assert_string_equal(events_err, "trocar: 1 stack without all parts: passed over\n");
}

/* Lines that are delivered again count once, within a file and among files. */
static void test_again(void **state)
{
	events_write(
		WHOLE("1", "20", "f") "\n" WHOLE("1", "20", "f") "\n" WHOLE("2", "20", "f") "\n");
	write_other(other, WHOLE("2", "20", "f") "\n" WHOLE("3", "20", "f") "\n", true);
	assert_int_equal(events_command("folded", events_file, other, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;f 3\n");
	assert_string_equal(events_err, "trocar: 2 lines that came again: counted once\n");
	/* A file compared with itself is no repetition. */
	assert_int_equal(events_command("diff", events_file, events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;f 1000000 1000000\n");
}

/* A log with other programs' lines, in the forms of the journal. */
static void test_other_programs(void **state)
{
	events_write("-- Boot 91e4 --\n"
		     "Nov 21 15:59:03 shop1 trocar-consumer[7]: 3 rules in force\n"
		     "Nov 21 15:59:03 shop1 trocar-consumer[7]: " WHOLE(
			     "1", "20", "f") "\n"
					     "{\"MESSAGE\":null}\n"
					     "{\"MESSAGE\":\"started\"}\n");
	assert_int_equal(events_command("folded", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;f 1\n");
	assert_string_equal(events_err,
			    "trocar: 3 lines of other programs: passed over\n"
			    "trocar: 1 line whose message journalctl has left out: run it with -a, "
			    "or with -o cat\n");
	events_write("nothing of ours\n");
	assert_int_equal(events_command("report", "--full", events_file, NULL), COMMAND_FAILED);
	assert_string_equal(events_err,
			    "trocar: 1 line of other programs: passed over\n"
			    "trocar: there is no session in the lines that were read\n");
}

/* A file that cannot be read to its end costs no other file, and shows in the exit status. */
static void test_damaged(void **state)
{
	write_other(other, WHOLE("1", "20", "f") "\n", true);
	assert_int_equal(truncate(other, 100), 0);
	events_write(WHOLE("2", "21", "g") "\n");
	assert_int_equal(events_command("folded", other, events_file, NULL), COMMAND_FAILED);
	assert_string_equal(events_out, "web;g 1\n");
	assert_non_null(strstr(events_err, ": the compressed data end early"));
	assert_int_equal(events_command("folded", events_file, "/nonexistent", NULL),
			 COMMAND_FAILED);
	assert_string_equal(events_out, "");
	assert_int_equal(events_command("symbolize", other, NULL), COMMAND_FAILED);
	assert_non_null(strstr(events_err, ": the compressed data end early"));
	assert_int_equal(events_command("folded", "/tmp", NULL), COMMAND_FAILED);
	assert_string_equal(events_err, "trocar: /tmp: is a folder: name files\n");
}

/* Files without events, or without a known time, stay in the order in which they were named. */
static void test_order(void **state)
{
	events_write("x\n");
	write_other(other, "", true);
	write_other(third, WHOLE("1", "20", "f") "\n", false);
	assert_int_equal(events_command("folded", events_file, other, third, NULL), COMMAND_FINE);
	assert_string_equal(events_out, "web;f 1\n");
}

UNIT_TESTS(input)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
	const struct CMUnitTest tests[] = { TEST(rotated), TEST(again), TEST(other_programs),
					    TEST(damaged), TEST(order) };

	return cmocka_run_group_tests_name("input", tests, NULL, NULL);
}
