/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/cli/terminal.h"
#include "ctl/client/show_status.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static char *text;

static int forget(void **state)
{
	free(text);
	text = NULL;
	terminal_use(&(struct terminal){ 0 });
	return 0;
}

/* What is shown of such answers; NULL: there is none. */
static void show_all_of(const char *status, const char *watches, const char *sessions, bool all)
{
	const char *const answers[] = { status, watches, sessions };
	const struct json_node *nodes[ARRAY_SIZE(answers)] = { NULL };
	struct json_tree trees[ARRAY_SIZE(answers)] = { 0 };
	struct json_fault fault;
	size_t bytes;
	FILE *out;

	free(text);
	out = open_memstream(&text, &bytes);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		if (!answers[i])
			continue;
		assert_int_equal(
			json_tree_read(answers[i], strlen(answers[i]), 32, &trees[i], &fault), 0);
		nodes[i] = trees[i].nodes;
	}
	assert_int_equal(
		show_status(&(struct status_answers){ nodes[0], nodes[1], nodes[2] }, all, out), 0);
	fclose(out);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		json_tree_done(&trees[i]);
}

static void show(const char *status, bool all)
{
	show_all_of(status, NULL, NULL, all);
}

static void has(const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

/* A cgroup's name is its owner's choice: it reaches no terminal as it is. */
static void test_unseen(void **state)
{
	show("{\"cgroups\":{\"unreadable\":{\"count\":3,\"error\":\"EACCES\","
	     "\"example\":\"/u\\u001b[2J\"},\"unknown\":{\"count\":0},"
	     "\"cut\":true,\"error\":\"EIO\"}}",
	     false);
	has("! 3 cgroups cannot be read: error EACCES, for example /u\\x1b[2J\n");
	has("! the cgroup hierarchy is larger than the agent lists\n");
	has("! the cgroup hierarchy cannot be read: error EIO\n");
	show("{\"cgroups\":{\"unreadable\":{\"count\":0},\"unknown\":{"
	     "\"count\":0},\"cut\":false,\"error\":null}}",
	     false);
	assert_null(strstr(text, "! the cgroup"));
	assert_null(strstr(text, "cannot be read"));
}

/* Faults are printed before anything else, the worst first; three faults in short, all by --all. */
static void test_not_well(void **state)
{
	static const char answer[] =
		"{\"rules\":0,\"rules_refused\":{\"age_ms\":61000,\"faults\":1,\"first\":"
		"\"/etc/r\\u001b.json:3: /rules/0: want a name\"},\"broker\":{\"there\":false,"
		"\"reason\":\"not started\"},\"sampling\":{\"missing\":1,\"reason\":\"busy\"},"
		"\"totals\":{\"targets_full\":1,\"lines_dropped\":1},\"unwind\":{"
		"\"tables_full\":3},\"scope\":{\"refused\":2}}";

	show(answer, false);
	has("not well: trocar -, up 0 s, pid 0\n"
	    "! the rules file was refused 1 min 1 s ago, the rules before it stay (1 fault): "
	    "/etc/r\\x1b.json:3: /rules/0: want a name\n"
	    "! no rules in force: nothing is watched\n"
	    "! no broker: not started\n"
	    "! and 4 more: trocar status --all\n"
	    "watched: ");
	has("lost: 1 line; ");
	show(answer, true);
	has("! 1 CPU is not sampled: busy\n"
	    "! the table of processes (--targets) was full, once\n"
	    "! no table of unwinding was free (owners, in --all), 3 times\n"
	    "! 2 times a cgroup outside of the loader's --scope was not watched\n");
	show("{\"rules\":1,\"broker\":{\"there\":true}}", false);
	assert_ptr_equal(strstr(text, "well: trocar"), text);
	assert_null(strchr(text, '!'));
}

static unsigned int count_lines(void)
{
	unsigned int n = 0;

	for (const char *c = text; *c; c++)
		n += *c == '\n';
	return n;
}

/* Twelve lines, however much there is: what is left out is counted. */
static void test_twelve_lines(void **state)
{
#define WATCH(name)                                                                          \
	"{\"cgroup\":\"/" name "\",\"rules\":[\"r\"],\"sessions\":1,\"pressure\":{\"cpu\":{" \
	"\"some_total_us\":3000},\"io\":{\"some_total_us\":2000000}}}"
#define SESSION(state, ms) \
	"{\"session\":\"ab\",\"cgroup\":\"/c\",\"state\":\"" state "\",\"age_ms\":" ms "}"
	static const char watches[] =
		"[" WATCH("a") "," WATCH("b") "," WATCH("c") "," WATCH("d") "," WATCH("e") "]";
	static const char sessions[] =
		"[" SESSION("capture", "412") "," SESSION("ended", "7260000") "]";

	show_all_of("{\"rules\":1}", watches, sessions, false);
	assert_true(count_lines() <= 12);
	has("  /a  r  stalled on io 2.0 s  1 session\n");
	has("  /c  r  stalled on io 2.0 s  1 session\n"
	    "  and 2 more: trocar watches\n");
	has("  /c  ab  runs for 412 ms  -\n"
	    "  /c  ab  2 h 1 min ago    -\n");
	/* Where there are faults, less of the rest. */
	show_all_of("{\"rules\":0,\"broker\":{\"there\":false},\"output\":{\"dropped_lines\":1,"
		    "\"last_error\":28}}",
		    watches, sessions, false);
	assert_true(count_lines() <= 12);
	has("! and 1 more: trocar status --all\n");
	has("  /a  r  stalled on io 2.0 s  1 session\n"
	    "  and 4 more: trocar watches\n");
}

/* An unreadable file is not reported as one without a stall. */
static void test_pressure_not_known(void **state)
{
	show_all_of(
		"{}",
		"[{\"cgroup\":\"/a\",\"rules\":[\"r\"],\"sessions\":1,\"pressure\":{\"cpu\":{\"by\":"
		"\"none\",\"reason\":\"its pressure is switched off\"}}},"
		"{\"cgroup\":\"/b\",\"rules\":[\"r\"],\"sessions\":1,\"pressure\":{\"cpu\":{\"by\":"
		"\"scan\",\"some_total_us\":0}}}]",
		"[]", false);
	has("  /a  r  pressure not known  1 session\n");
	has("  /b  r  no stall            1 session\n");
}

/* A fault is one line of the terminal, unless all is asked for. */
static void test_narrow(void **state)
{
	static const char status[] = "{\"rules\":1,\"broker\":{\"there\":false,\"reason\":\"there "
				     "is no broker's socket\"}}";

	terminal_use(&(struct terminal){ .columns = 30 });
	show(status, false);
	has("! no broker: there is no bro..\n");
	show(status, true);
	has("! no broker: there is no broker's socket\n");
}

/* What is no status of this version is shown as far as it goes. */
static void test_odd(void **state)
{
	show_all_of("[]", "{}", "7", true);
	has("well: trocar -, up 0 s, pid 0\n");
	show_all_of("{\"rules\":\"x\",\"totals\":[1],\"output\":null,\"cgroups\":7}", "[1,null,{}]",
		    "[[]]", false);
	has("  -  -  no stall  0 sessions\n");
}

UNIT_TESTS(show_status)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, forget, forget)
	const struct CMUnitTest tests[] = {
		TEST(unseen), TEST(not_well), TEST(twelve_lines),
		TEST(narrow), TEST(odd),      TEST(pressure_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
