/* SPDX-License-Identifier: BSD-2-Clause */
/* The command as a whole, on event lines of the specimens. */
#include "tests/unit/runner/unit.h"

#include <inttypes.h>

#include "tests/unit/ctl/events_testing.h"
#include "tests/unit/ctl/specimens_testing.h"

static struct specimens_facts facts;
static char lines[4096];

static int setup(void **state)
{
	return specimens_facts("pie", &facts) ? events_setup(state) : -1;
}

/* A stack line of one nameless frame; `more` stands behind it. */
static void write_frame(const char *module, const char *id, uint64_t offset, const char *more)
{
	snprintf(lines, sizeof(lines),
		 EVENTS_STACK(
			 "1", "during", "c", "4", "40",
			 "{\"fn\":null,\"why\":\"no_permission\",\"module\":\"%s\",\"build_id\":"
			 "\"%s\",\"offset\":%" PRIu64 ",\"kind\":\"user\"}%s"),
		 module, id, offset, more);
	events_write(lines);
}

static void test_by_module(void **state)
{
	char module[512], wanted[64];

	specimens_path(module, "pie.full");
	write_frame(module, facts.id, facts.at, "");
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_non_null(strstr(events_out, "\"frames\":[{\"fn\":\"specimen_telling\",\"module\":"));
	assert_null(strstr(events_out, "\"why\""));
	assert_null(strstr(events_out, "\"source\""));
	assert_null(strstr(events_out, "\"unnamed\""));
	assert_non_null(strstr(events_err, "1 frame named, 0 still without a name"));
	assert_int_equal(events_command("symbolize", "--source", events_file, NULL), COMMAND_FINE);
	snprintf(wanted, sizeof(wanted), "specimen.c\",\"line\":%u},\"inlined\":[{",
		 specimens_line("/* line of the outer call */"));
	assert_non_null(strstr(events_out, wanted));
}

static void test_by_folder(void **state)
{
	write_frame("/nowhere/x", facts.id, facts.at, "");
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_non_null(strstr(events_err, "1 no_file: "));
	assert_non_null(strstr(events_out, "\"why\":\"no_permission\""));
	assert_non_null(strstr(events_out, "\"unnamed\":1"));
	assert_int_equal(
		events_command("symbolize", events_file, "--debug-dir", "/var/empty-not", NULL),
		COMMAND_FAILED);
	assert_int_equal(events_command("symbolize", events_file, "--debug-dir", "/etc/security",
					"--debug-dir", specimens_dir, NULL),
			 COMMAND_FINE);
	assert_non_null(strstr(events_out, "\"fn\":\"specimen_telling\""));
}

/* Remedies are printed as commands; what cannot be a build-id or a path is in none. */
static void test_missing(void **state)
{
	static const char hostile[] = "/a\\n/b";

	write_frame("/nowhere/x", "00112233445566778899", 7, "");
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_non_null(strstr(events_err, "  debuginfod-find debuginfo 00112233445566778899    # "
					   "1 frame of /nowhere/x\n"));
	assert_int_equal(
		events_command("symbolize", "--debuginfod-cache", "/nowhere", events_file, NULL),
		COMMAND_FAILED);
	assert_non_null(strstr(events_err, "/nowhere: No such file or directory"));
	assert_int_equal(events_command("symbolize", "--debuginfod-cache", "/etc/security",
					events_file, NULL),
			 COMMAND_FINE);
	write_frame(hostile, "00112233445566778899", 7, "");
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_non_null(strstr(events_err, "1 frame of a file without a path\n"));
	write_frame("/nowhere/x", "$(reboot)", 7, "");
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_null(strstr(events_err, "debuginfod"));
}

/* A frame of each of two modules with one build-id. */
static void write_two(const char *one, const char *two, const char *id)
{
	char both[sizeof(lines)];

	write_frame(one, id, facts.at, "");
	snprintf(both, sizeof(both), "%s", lines);
	write_frame(two, id, facts.at, "");
	snprintf(both + strlen(both), sizeof(both) - strlen(both), "%s", lines);
	events_write(both);
}

static void assert_both_named(void)
{
	assert_non_null(strstr(events_out, "\"fn\":\"specimen_telling\""));
	assert_non_null(strstr(events_out, "\"fn\":\"specimen_of_two\""));
}

/* An id of two bytes means nothing: each path is a file of its own (finding B8). */
static void test_short_ids(void **state)
{
	char one[512], two[512];

	specimens_path(one, "one.short");
	specimens_path(two, "two.short");
	write_two(one, two, "0102");
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_both_named();
}

/* Files that differ are builds of their own, with any build-id (finding B8). */
static void test_shared_ids(void **state)
{
	static const char id[] = "00112233445566778899aabbccddeeff00112233";
	char one[512], two[512];

	specimens_path(one, "one.long");
	specimens_path(two, "two.long");
	write_two(one, two, id);
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_both_named();
	assert_int_equal(
		events_command("symbolize", events_file, "--debug-dir", specimens_dir, NULL),
		COMMAND_FINE);
	assert_both_named();
	write_two("/nowhere/one", "/nowhere/two", id);
	assert_int_equal(
		events_command("symbolize", events_file, "--debug-dir", specimens_dir, NULL),
		COMMAND_FINE);
	assert_null(strstr(events_out, "\"fn\":\"specimen"));
	assert_non_null(strstr(events_err, "2 shared_id: "));
}

static void test_other_build(void **state)
{
	char module[512];

	specimens_path(module, "fixed.full");
	write_frame(module, facts.id, facts.at, "");
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_non_null(strstr(events_out, "\"fn\":null,\"why\":\"no_permission\""));
	assert_non_null(strstr(events_err, "1 other_build: "));
}

/* Frames that are named keep their names, and get their lines. */
static void test_named_frame(void **state)
{
	char module[512];

	specimens_path(module, "pie.full");
	snprintf(lines, sizeof(lines),
		 EVENTS_STACK("1", "during", "c", "4", "40",
			      "{\"fn\":\"mine\",\"module\":\"%s\",\"build_id\":\"%s\",\"offset\":"
			      "%" PRIu64 ",\"kind\":\"user\"}"),
		 module, facts.id, facts.at);
	events_write(lines);
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, lines);
	assert_int_equal(events_command("symbolize", events_file, "--source", NULL), COMMAND_FINE);
	assert_non_null(strstr(events_out, "{\"fn\":\"mine\","));
	assert_non_null(strstr(events_out, "\"source\":{\"file\":"));
	assert_non_null(strstr(events_err, "1 of 1 frame of files with a source line"));
}

/* A return address belongs to the call before it. */
static void test_caller(void **state)
{
	char module[512], wanted[96];

	specimens_path(module, "pie.full");
	snprintf(lines, sizeof(lines),
		 EVENTS_STACK("1", "during", "c", "4", "40",
			      "{\"fn\":\"leaf\",\"kind\":\"user\"},{\"fn\":null,\"why\":\"x\","
			      "\"module\":\"%s\",\"build_id\":\"%s\",\"offset\":%" PRIu64
			      ",\"kind\":\"user\"}"),
		 module, facts.id, facts.at + 1);
	events_write(lines);
	assert_int_equal(events_command("symbolize", events_file, "--source", NULL), COMMAND_FINE);
	/* The nop is one byte long: only the byte before the address is of its line. */
	snprintf(wanted, sizeof(wanted), "specimen.c\",\"line\":%u},{\"fn\":\"specimen_between\"",
		 specimens_line("/* line of the instruction */"));
	assert_non_null(strstr(events_out, wanted));
}

/* An interrupted function has called nothing: it is looked up where it stands. */
static void test_interrupted(void **state)
{
	char module[512], wanted[96];

	specimens_path(module, "pie.full");
	snprintf(lines, sizeof(lines),
		 EVENTS_STACK("1", "during", "c", "4", "40",
			      "{\"fn\":\"leaf\",\"kind\":\"user\"},{\"fn\":null,\"why\":\"x\","
			      "\"module\":\"%s\",\"build_id\":\"%s\",\"offset\":%" PRIu64
			      ",\"exact\":true,\"kind\":\"user\"}"),
		 module, facts.id, facts.at);
	events_write(lines);
	assert_int_equal(events_command("symbolize", events_file, "--source", NULL), COMMAND_FINE);
	snprintf(wanted, sizeof(wanted), "specimen.c\",\"line\":%u},{\"fn\":\"specimen_between\"",
		 specimens_line("/* line of the instruction */"));
	assert_non_null(strstr(events_out, wanted));
	assert_non_null(strstr(events_out, "\"exact\":true"));
}

/* What is no stack, or no event line, goes through as it came. */
static void test_passes_through(void **state)
{
	static const char text[] =
		EVENTS_START("1") EVENTS_HEAD("other", "1") "}\n"
							    "no line\n"
							    "\n" EVENTS_END("1") "{\"cut\":";

	events_write(text);
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FAILED);
	assert_string_equal(events_out, text);
	assert_non_null(strstr(events_err, "2 faulty lines: left as before"));
}

static void test_missing_parts(void **state)
{
	static const char part[] = EVENTS_HEAD(
		"stack", "1") ",\"signal\":\"oncpu\",\"phase\":\"during\",\"comm\":\"c\","
			      "\"count\":1,\"weight_ns\":1,\"frames\":[" EVENTS_UNNAMED
			      "],\"stack_id\":1,\"part\":1,\"parts\":2}\n";

	events_write(part);
	assert_int_equal(events_command("symbolize", events_file, NULL), COMMAND_FINE);
	assert_string_equal(events_out, part);
	assert_non_null(strstr(events_err, "1 stack without all parts: left as before"));
}

/* Frames of the kernel and of a JIT are of no file. */
static void test_other_kinds(void **state)
{
	events_write(EVENTS_STACK("1", "during", "c", "1", "1",
				  "{\"fn\":null,\"why\":\"a\",\"kind\":\"kernel\"},{\"fn\":null,"
				  "\"why\":\"b\",\"offset\":7,\"kind\":\"jit\"},{\"fn\":null,"
				  "\"why\":\"no_mapping\",\"module\":null,\"kind\":\"user\"}"));
	assert_int_equal(events_command("symbolize", events_file, "--source", NULL), COMMAND_FINE);
	assert_non_null(strstr(events_err, "0 frames named, 3 still without a name"));
	assert_non_null(strstr(events_err, "2 of the kernel, or in memory without a file"));
	assert_non_null(strstr(events_err, "1 no_build_id: "));
}

/* A file that is none costs its own frames, and no others. */
static void test_hostile_file(void **state)
{
	char path[] = "/tmp/trocar-hostile-XXXXXX", module[512], command[1200];
	int fd = mkstemp(path);

	close(fd);
	specimens_path(module, "pie.full");
	/* Its symbol table claims the length of all memory. */
	snprintf(
		command, sizeof(command),
		"cp %s %s && at=$(readelf -SW %s | sed -n 's/^ *\\[ *\\([0-9]*\\)\\] .symtab.*/\\1/p') "
		"&& off=$(readelf -hW %s | awk '/Start of section headers/ { print $5 }') "
		"&& printf '\\377\\377\\377\\377\\377\\377\\377\\177' | dd of=%s bs=1 conv=notrunc "
		"seek=$((off + at * 64 + 32)) 2>/dev/null",
		module, path, path, path, path);
	assert_int_equal(system(command), 0);
	write_frame(path, facts.id, facts.at, "");
	assert_int_equal(events_command("symbolize", events_file, "--source", NULL), COMMAND_FINE);
	assert_non_null(strstr(events_err, "0 frames named, 1 still"));
	unlink(path);
}

static void test_options(void **state)
{
	assert_int_equal(events_command("symbolize", "--max-line-bytes", "100", NULL),
			 COMMAND_USAGE);
	assert_int_equal(events_command("symbolize", "--top", "1", NULL), COMMAND_USAGE);
	assert_int_equal(events_command("symbolize", "/nowhere/x", NULL), COMMAND_FAILED);
	assert_int_equal(events_command("help", "symbolize", NULL), COMMAND_FINE);
	assert_non_null(strstr(events_out, "--debug-dir DIR"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, events_teardown)

UNIT_TESTS(symbolize)
{
	const struct CMUnitTest tests[] = {
		TEST(by_module),     TEST(by_folder),	TEST(missing),	    TEST(other_build),
		TEST(named_frame),   TEST(caller),	TEST(interrupted),  TEST(passes_through),
		TEST(missing_parts), TEST(other_kinds), TEST(hostile_file), TEST(options),
		TEST(short_ids),     TEST(shared_ids),
	};

	specimens_dir = argv[1];
	specimens_source = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
