/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/naming/module_advice.h"
#include "consumer/unwind/store/unwind_file.h"
#include "shared/tools/macro.h"

static const struct {
	const char *module, *why;
	bool broken;
	const char *sentence; /* NULL: none */
	const char *rowless;
} cases[] = {
	{ "/usr/lib/libfoo.so.1", "stripped", true,
	  "libfoo.so.1 was built without frame pointers and without symbols: apt install "
	  "$(dpkg -S '*/lib/libfoo.so.1' | cut -d: -f1)-dbgsym (from debian-debug), or dnf "
	  "debuginfo-install /usr/lib/libfoo.so.1" },
	{ "/lib/x86_64-linux-gnu/libcrypto.so.3", "stripped", false,
	  "libcrypto.so.3 has no symbols: apt install $(dpkg -S "
	  "'*/lib/x86_64-linux-gnu/libcrypto.so.3' | cut -d: -f1)-dbgsym (from debian-debug), "
	  "or dnf debuginfo-install /lib/x86_64-linux-gnu/libcrypto.so.3" },
	{ "/usr/lib/x86_64-linux-gnu/libm.so.6", "stripped", false,
	  "libm.so.6 has no symbols: apt install libc6-dbg, or dnf debuginfo-install "
	  "/usr/lib/x86_64-linux-gnu/libm.so.6" },
	{ "/lib/libc.so.6", "no_symbol", false,
	  "libc.so.6 has not all of its symbols: apt install libc6-dbg, or dnf "
	  "debuginfo-install /lib/libc.so.6" },
	{ "/usr/sbin/nginx", "stripped", false,
	  "nginx has no symbols: apt install $(dpkg -S '*/sbin/nginx' | cut -d: "
	  "-f1)-dbgsym (from debian-debug), or dnf debuginfo-install /usr/sbin/nginx" },
	{ "/library/app", "stripped", false,
	  "app has no symbols: install its debug symbols, or build it without strip" },
	{ "/usr/bin/$(reboot)", "stripped", false,
	  "$(reboot) has no symbols: install its debug symbols, or build it without strip" },
	{ "/opt/libfoo.so", "stripped", false,
	  "libfoo.so has no symbols: install its debug symbols, or build it without strip" },
	{ "/opt/app", "no_permission", true, "app: the agent's user may not read the file" },
	{ "/opt/app", NULL, true,
	  "stacks end in app, which was built without frame pointers: "
	  "-fno-omit-frame-pointer keeps them" },
	{ "[anon]", "no_perf_map", true,
	  "[anon]: in memory without a file, and no /tmp/perf-PID.map names it: code that was "
	  "compiled at run time has names when the program writes one (a JVM that runs, JDK 17 and "
	  "later: jcmd PID Compiler.perfmap), code that was moved out of its file, as for huge "
	  "pages, has none" },
	/* The file has none, has some, or has unreadable ones. */
	{ "/opt/app", NULL, true,
	  "stacks end in app, which was built without frame pointers: "
	  "-fno-omit-frame-pointer keeps them",
	  "no_call_frame_information" },
	{ "/usr/lib/libboost_context.so.1.74.0", NULL, true,
	  "stacks end in libboost_context.so.1.74.0, at code that its call frame "
	  "information leaves out: assembly, or where a fibre begins",
	  "" },
	{ "/opt/app", "stripped", true,
	  "stacks end in app: it has more call frame information than is read (32 MiB, "
	  "1,048,576 functions, 4,194,304 rows)",
	  "too_large" },
	{ "/memfd:app", "memory_file", true,
	  "stacks end in memfd:app: a program or library without a path (memfd_create), "
	  "which trocar does not open: trocar symbolize names it by its build-id",
	  "memory_file" },
	{ "/opt/app", "stripped", false,
	  "app has no symbols: install its debug symbols, or build it without strip", "too_large" },
	{ "/opt/app", NULL, true,
	  "stacks end in app, which was built without frame pointers: "
	  "-fno-omit-frame-pointer keeps them",
	  "what nobody knows" },
	{ "[anon]", NULL, true, NULL },
	{ "kernel", NULL, true, NULL },
	{ "/opt/app", NULL, false, NULL },
	{ "/opt/app", "what nobody knows", false, NULL },
};

static void test_sentences(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[SUMMARY_ADVICE_BYTES] = "";
		bool some = module_advice(cases[i].module, cases[i].why, cases[i].broken,
					  cases[i].rowless, text);

		assert_int_equal(some, cases[i].sentence != NULL);
		if (some)
			assert_string_equal(text, cases[i].sentence);
	}
}

/* Each reason why a file has no rows has a sentence of its own, and none of them blames the build.
 */
static void test_each_why(void **state)
{
	static const char *const words[] = {
#define UNWIND_WHY(error, word, help) word,
#include "consumer/unwind/store/unwind_whys.def"
#undef UNWIND_WHY
		"not_readable",
		"memory_file",
		"no_permission",
		"deleted",
	};
	char text[SUMMARY_ADVICE_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		bool none = !strcmp(words[i], "no_call_frame_information");

		assert_true(module_advice("/opt/app", NULL, true, words[i], text));
		assert_int_equal(strstr(text, "built without frame pointers") != NULL, none);
		assert_non_null(unwind_file_help(words[i]));
		if (!none)
			assert_non_null(strstr(text, unwind_file_help(words[i])));
	}
}

/* A path is foreign: of any length. */
static void test_bounded(void **state)
{
	static const char *const whys[] = { NULL, "stripped", "no_symbol", "no_permission" };
	char path[4096], text[SUMMARY_ADVICE_BYTES];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memcpy(path, "/lib", 4);
	for (size_t i = 0; i < ARRAY_SIZE(whys); i++)
		for (int tail = 0; tail < 2; tail++) {
			if (tail)
				memcpy(path + 100, ".so.1", 5);
			assert_true(module_advice(path, whys[i], true, NULL, text));
			assert_true(strlen(text) < sizeof(text));
			assert_true(module_advice(path, whys[i], true, "too_large", text));
			assert_true(strlen(text) < sizeof(text));
		}
}

UNIT_TESTS(module_advice)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_each_why),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
