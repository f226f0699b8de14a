/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"
#include <errno.h>
#include <string.h>

#include "loader/bpffs/bpfdir.h"
#include "loader/options.h"
#include "shared/abi/abi.h"
#include "shared/tools/macro.h"

static char fault[OPTION_TABLE_FAULT_BYTES];

static int parse(uint32_t verb, const char *const words[], struct options *o)
{
	int n = 0;

	while (words[n])
		n++;
	fault[0] = '\0';
	return options_parse(verb, n, (char *const *)words, o, fault);
}

#define PARSE(verb, o, ...) parse(verb, (const char *const[]){ __VA_ARGS__, NULL }, o)

static void defaults(void **state)
{
	const char *const none[] = { NULL };
	struct options o;

	assert_int_equal(parse(FOR_LOAD, none, &o), 0);
	assert_int_equal(o.hz, 97);
	assert_int_equal(o.samples_kib, 4096);
	assert_int_equal(o.events_kib, 256);
	assert_int_equal(o.errors_kib, 64);
	assert_int_equal(o.watches, 1024);
	assert_int_equal(o.targets, 16384);
	assert_int_equal(o.rules, 10240);
	assert_int_equal(o.threads, ACCOUNTS_DEFAULT);
	assert_int_equal(o.locks, LOCKS_DEFAULT);
	assert_int_equal(o.long_waits, LONG_WAITS_DEFAULT);
	assert_string_equal(o.bpf_dir, "/run/trocar/bpf");
	assert_string_equal(o.group, "trocar");
	assert_false(o.replace);
	assert_false(options_always_oncpu(&o));
	assert_int_equal(PARSE(FOR_LOAD, &o, "--always", "oncpu"), 0);
	assert_true(options_always_oncpu(&o));
	assert_int_equal(PARSE(FOR_BROKER, &o, "--user=7", "--bpf-dir=/run/x"), 0);
	assert_string_equal(o.user, "7");
	assert_int_equal(PARSE(FOR_BROKER, &o, "--user="), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--user=7"), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--always", "offcpu"), -EINVAL);
	assert_string_equal(fault, "--always offcpu: want oncpu or none");
}

static void both_spellings(void **state)
{
	struct options o;

	assert_int_equal(PARSE(FOR_LOAD, &o, "--hz", "49", "--rules=16", "--replace", "--group=7",
			       "--bpf-dir", "/run/x"),
			 0);
	assert_int_equal(o.hz, 49);
	assert_int_equal(o.rules, 16);
	assert_true(o.replace);
	assert_string_equal(o.group, "7");
	assert_string_equal(o.bpf_dir, "/run/x");
	assert_false(o.keep_mount);
	assert_int_equal(PARSE(FOR_UNLOAD, &o, "--keep-mount"), 0);
	assert_true(o.keep_mount);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--keep-mount"), -EINVAL);
}

static void numbers_have_walls(void **state)
{
	static const char *const faulty[] = {
		"--hz=4",
		"--hz=1000",
		"--hz=",
		"--hz=9x",
		"--hz=-97",
		"--hz= 97",
		"--watches=0",
		"--watches=65537",
		"--samples-ring-kib=96",
		"--errors-ring-kib=3",
		"--targets=99999999999999999999",
	};
	struct options o;

	for (size_t i = 0; i < ARRAY_SIZE(faulty); i++) {
		assert_int_equal(PARSE(FOR_LOAD, &o, faulty[i]), -EINVAL);
		assert_non_null(strstr(fault, ": want a "));
	}
}

static void unknown_and_misplaced(void **state)
{
	struct options o;

	assert_int_equal(PARSE(FOR_LOAD, &o, "--hertz=9"), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--hzz", "9"), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--json"), -EINVAL);
	assert_int_equal(PARSE(FOR_UNLOAD, &o, "--hz=97"), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--replace=yes"), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--hz"), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "extra"), -EINVAL);
	assert_int_equal(PARSE(0, &o, "--json"), -EINVAL);
	assert_int_equal(PARSE(FOR_LOAD, &o, "--group="), -EINVAL);
}

static void directories(void **state)
{
	static const char *const faulty[] = {
		"--bpf-dir=",	       "--bpf-dir=run",	    "--bpf-dir=/",
		"--bpf-dir=/run/",     "--bpf-dir=/run//x", "--bpf-dir=/run/./x",
		"--bpf-dir=/run/../x", "--bpf-dir=/..",	    "--bpf-dir=/sys/fs/bpf",
	};
	char longest[BPFDIR_PATH_BYTES + 16] = "--bpf-dir=/";
	struct options o;

	for (size_t i = 0; i < ARRAY_SIZE(faulty); i++)
		assert_int_equal(PARSE(FOR_UNLOAD, &o, faulty[i]), -EINVAL);
	memset(longest + 11, 'x', BPFDIR_PATH_BYTES - 1);
	assert_int_equal(PARSE(FOR_UNLOAD, &o, longest), -EINVAL);
	longest[10 + BPFDIR_PATH_BYTES - 1] = '\0';
	assert_int_equal(PARSE(FOR_UNLOAD, &o, longest), 0);
	assert_int_equal(PARSE(FOR_UNLOAD, &o, "--bpf-dir=/sys/fs/bpf/trocar"), 0);
}

static void lists(void **state)
{
	const char *words[SCOPE_PREFIXES + 2] = { NULL };
	struct options o;

	assert_int_equal(PARSE(FOR_LOAD, &o, "--scope", "/a", "--scope=/b/c"), 0);
	assert_int_equal(o.scope.count, 2);
	assert_string_equal(o.scope.items[0], "/a");
	assert_string_equal(o.scope.items[1], "/b/c");
	assert_int_equal(PARSE(FOR_LOAD, &o, "--scope", "system.slice"), -EINVAL);
	assert_non_null(strstr(fault, "--scope system.slice"));
	assert_int_equal(PARSE(FOR_LOAD, &o, "--scope"), -EINVAL);
	for (size_t i = 0; i < SCOPE_PREFIXES; i++)
		words[i] = "--scope=/x";
	assert_int_equal(parse(FOR_LOAD, words, &o), 0);
	words[SCOPE_PREFIXES] = "--scope=/x";
	assert_int_equal(parse(FOR_LOAD, words, &o), -EINVAL);
}

UNIT_TESTS(options)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),	      cmocka_unit_test(both_spellings),
		cmocka_unit_test(numbers_have_walls), cmocka_unit_test(unknown_and_misplaced),
		cmocka_unit_test(directories),	      cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
