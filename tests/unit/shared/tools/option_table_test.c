/* SPDX-License-Identifier: BSD-2-Clause */
/* A table with a row of each type, and each fault with its words; the programs' own tables are
 * tested by the options_test of each. */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/option_table.h"

enum { FOR_A = 1, FOR_B = 2, FOR_BOTH = 3 };

struct options {
	bool set, clear;
	uint64_t number, power;
	const char *text, *name, *choice, *path;
	struct option_list list;
};

static bool is_lower(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz") == strlen(text);
}

static const struct option_row rows[] = {
	OPTION_ROW(SET, FOR_BOTH, set, "set", .letter = 's', .help = "sets"),
	OPTION_ROW(CLEAR, FOR_BOTH, clear, "no-clear", .help = "clears"),
	OPTION_ROW(NUMBER, FOR_BOTH, number, "number", .value = "N", .min = 5, .max = 999,
		   .preset = "97", .help = "a number"),
	OPTION_ROW(POWER, FOR_BOTH, power, "power", .value = "N", .min = 4, .max = 64,
		   .help = "a power"),
	OPTION_ROW(TEXT, FOR_BOTH, text, "text", .value = "TEXT", .preset = "some",
		   .help = "a text"),
	OPTION_ROW(TEXT, FOR_B, name, "name", .value = "NAME", .letter = 'n', .min = 1,
		   .check = is_lower, .want = "a name in lower case", .help = "a name"),
	OPTION_ROW(CHOICE, FOR_BOTH, choice, "choice", .value = "WHAT", .choices = "one|two|three",
		   .preset = "two", .help = "a choice"),
	OPTION_ROW(PATH, FOR_BOTH, path, "path", .value = "DIR", .max = 16, .help = "a path"),
	OPTION_ROW(TEXT, FOR_BOTH, list, "list", .value = "ITEM", .times = 2, .help = "items"),
};

static const struct option_table table = { rows, ARRAY_SIZE(rows), "prog help" };

static char fault[OPTION_TABLE_FAULT_BYTES];
static struct options o;
static struct option_words words;

static int parse_words(uint64_t users, struct option_words *w, const char *const arguments[])
{
	int n = 0;

	while (arguments[n])
		n++;
	o = (struct options){ 0 };
	words = (struct option_words){ 0 };
	fault[0] = '\0';
	return option_table_parse(&table, users, n, (char *const *)(uintptr_t)arguments, &o, w,
				  fault);
}

#define PARSE(...)	 parse_words(FOR_BOTH, NULL, (const char *const[]){ __VA_ARGS__, NULL })
#define PARSE_A(...)	 parse_words(FOR_A, NULL, (const char *const[]){ __VA_ARGS__, NULL })
#define PARSE_WORDS(...) parse_words(FOR_BOTH, &words, (const char *const[]){ __VA_ARGS__, NULL })

static void presets(void **state)
{
	const char *const none[] = { NULL };

	assert_int_equal(parse_words(FOR_A, NULL, none), 0);
	assert_false(o.set);
	assert_true(o.clear);
	assert_int_equal(o.number, 97);
	assert_int_equal(o.power, 0);
	assert_string_equal(o.text, "some");
	assert_string_equal(o.choice, "two");
	assert_null(o.name);
	assert_null(o.path);
	assert_int_equal(o.list.count, 0);
}

static void both_spellings(void **state)
{
	assert_int_equal(PARSE("--set", "--no-clear", "--number", "5", "--power=64", "--text", "-x",
			       "--name=abc", "--choice", "three", "--path=/a/b", "--list=1",
			       "--list", "2"),
			 0);
	assert_true(o.set);
	assert_false(o.clear);
	assert_int_equal(o.number, 5);
	assert_int_equal(o.power, 64);
	assert_string_equal(o.text, "-x");
	assert_string_equal(o.name, "abc");
	assert_string_equal(o.choice, "three");
	assert_string_equal(o.path, "/a/b");
	assert_int_equal(o.list.count, 2);
	assert_string_equal(o.list.items[0], "1");
	assert_string_equal(o.list.items[1], "2");
	/* The first '=' ends the name; a text may be empty; the last value holds. */
	assert_int_equal(PARSE("--text=a=b"), 0);
	assert_string_equal(o.text, "a=b");
	assert_int_equal(PARSE("--text", "a", "--text="), 0);
	assert_string_equal(o.text, "");
	assert_int_equal(PARSE("-s", "-n", "abc"), 0);
	assert_true(o.set);
	assert_string_equal(o.name, "abc");
}

/* Each kind of fault: the fault, its place, and the right form. */
static const struct {
	const char *arguments[3];
	const char *fault;
} faults[] = {
	{ { "--nothing" }, "--nothing: no such option here; see prog help" },
	{ { "--numbers=9" }, "--numbers=9: no such option here; did you mean --number?" },
	{ { "--numbe" }, "--numbe: no such option here; did you mean --number?" },
	{ { "--" }, "--: no such option here; see prog help" },
	{ { "--=9" }, "--=9: no such option here; see prog help" },
	{ { "-x" }, "-x: no such option here; see prog help" },
	{ { "-sn" }, "-sn: no such option here; see prog help" },
	{ { "-set" }, "-set: no such option here; see prog help" },
	{ { "-" }, "-: no such argument here, only options; see prog help" },
	{ { "" }, ": no such argument here, only options; see prog help" },
	{ { "set" }, "set: no such argument here, only options; see prog help" },
	{ { "--set=yes" }, "--set=yes: takes no value; see prog help" },
	{ { "--no-clear=" }, "--no-clear=: takes no value; see prog help" },
	{ { "--number" }, "--number: want a number from 5 to 999, and there is no value" },
	{ { "--number=" }, "--number: want a number from 5 to 999" },
	{ { "--number", "4" }, "--number 4: want a number from 5 to 999" },
	{ { "--number=1000" }, "--number 1000: want a number from 5 to 999" },
	{ { "--number=9x" }, "--number 9x: want a number from 5 to 999" },
	{ { "--number", "--set" }, "--number --set: want a number from 5 to 999" },
	{ { "--power=3" }, "--power 3: want a power of two from 4 to 64" },
	{ { "--power=128" }, "--power 128: want a power of two from 4 to 64" },
	{ { "--power=12" }, "--power 12: want a power of two from 4 to 64" },
	{ { "--text" }, "--text: want TEXT, and there is no value" },
	{ { "--name=" }, "--name: want a name in lower case" },
	{ { "--name", "A" }, "--name A: want a name in lower case" },
	{ { "--choice", "four" }, "--choice four: want one, two or three" },
	{ { "--choice=" }, "--choice: want one, two or three" },
	{ { "--choice=one|two" }, "--choice one|two: want one, two or three" },
	{ { "--choice=on" }, "--choice on: want one, two or three" },
	{ { "--path=a" },
	  "--path a: want an absolute path under 16 bytes without '.', '..' and '//'" },
	{ { "--list" }, "--list: want ITEM, and there is no value" },
	{ { "--list=1", "--list=2", "--list=3" }, "--list 3: want at most 2 of them" },
	{ { "--set", "--number=7", "--nothing" }, "--nothing: no such option here; see prog help" },
};

static void each_fault(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		const char *const *a = faults[i].arguments;

		assert_int_equal(PARSE(a[0], a[1], a[1] ? a[2] : NULL), -EINVAL);
		assert_string_equal(fault, faults[i].fault);
	}
}

/* A row of others is no option here. */
static void users(void **state)
{
	assert_int_equal(PARSE_A("--name=abc"), -EINVAL);
	assert_string_equal(fault, "--name=abc: no such option here; see prog help");
	assert_int_equal(PARSE_A("-n", "abc"), -EINVAL);
	assert_int_equal(PARSE_A("--set"), 0);
}

static void paths(void **state)
{
	static const char *const faulty[] = { "",     "/",     "a/b", "/a/", "/a//b",
					      "/./a", "/a/..", "//a", "/..", "/a/." };
	static const char *const fine[] = { "/a", "/a/b", "/.a", "/a..", "/...", "/2345678901234" };

	for (size_t i = 0; i < ARRAY_SIZE(faulty); i++)
		assert_int_equal(PARSE("--path", faulty[i]), -EINVAL);
	assert_int_equal(PARSE("--path", "/23456789012345"), 0); /* 15 bytes */
	assert_int_equal(PARSE("--path", "/234567890123456"), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		assert_int_equal(PARSE("--path", fine[i]), 0);
}

static void words_between(void **state)
{
	assert_int_equal(PARSE_WORDS("a", "--set", "-", "--number=5", "b"), 0);
	assert_int_equal(words.count, 3);
	assert_string_equal(words.items[0], "a");
	assert_string_equal(words.items[1], "-");
	assert_string_equal(words.items[2], "b");
	assert_int_equal(words.before, 3);
	assert_true(o.set);
	assert_int_equal(PARSE_WORDS("--set", "--", "--number", "-s", "--"), 0);
	assert_int_equal(words.count, 3);
	assert_string_equal(words.items[0], "--number");
	assert_string_equal(words.items[2], "--");
	assert_int_equal(words.before, 0);
	assert_int_equal(PARSE_WORDS("a", "--", "b"), 0);
	assert_int_equal(words.count, 2);
	assert_int_equal(words.before, 1);
}

/* As many words as there is room for, and one more. */
static void many_words(void **state)
{
	const char *arguments[OPTION_TABLE_WORDS_MAX + 2] = { NULL };

	for (size_t i = 0; i < OPTION_TABLE_WORDS_MAX; i++)
		arguments[i] = "word";
	assert_int_equal(parse_words(FOR_BOTH, &words, arguments), 0);
	assert_int_equal(words.count, OPTION_TABLE_WORDS_MAX);
	arguments[OPTION_TABLE_WORDS_MAX] = "last";
	assert_int_equal(parse_words(FOR_BOTH, &words, arguments), -EINVAL);
	assert_string_equal(fault, "last: too many arguments; see prog help");
}

/* An argument of any length is cut in the message. */
static void long_arguments(void **state)
{
	char argument[1000] = "--text=";

	memset(argument + 7, 'x', sizeof(argument) - 8);
	argument[sizeof(argument) - 1] = '\0';
	assert_int_equal(PARSE(argument), 0);
	memcpy(argument, "--name=X", 8);
	assert_int_equal(PARSE(argument), -EINVAL);
	assert_non_null(strstr(fault, "x: want a name in lower case"));
	memcpy(argument, "--what=", 7);
	assert_int_equal(PARSE(argument), -EINVAL);
	assert_non_null(strstr(fault, "x: no such option here; see prog help"));
}

static void help(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	option_table_help(&table, FOR_A, "  ", out);
	fclose(out);
	assert_string_equal(text,
			    "  --set, -s              sets\n"
			    "  --no-clear             clears\n"
			    "  --number N             a number (5 to 999; default 97)\n"
			    "  --power N              a power (power of two, 4 to 64)\n"
			    "  --text TEXT            a text (default some)\n"
			    "  --choice WHAT          a choice (one, two or three; default two)\n"
			    "  --path DIR             a path\n"
			    "  --list ITEM            items (up to 2 times)\n");
}

UNIT_TESTS(option_table)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets),	  cmocka_unit_test(both_spellings),
		cmocka_unit_test(each_fault),	  cmocka_unit_test(users),
		cmocka_unit_test(paths),	  cmocka_unit_test(words_between),
		cmocka_unit_test(many_words),	  cmocka_unit_test(help),
		cmocka_unit_test(long_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
