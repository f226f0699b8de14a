/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include "consumer/report/module_advice.h"
#include "shared/tools/macro.h"

static void test_sentences(void **state)
{
	static const struct {
		const char *module, *why;
		bool broken;
		const char *sentence; /* NULL: none */
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
		{ "/opt/app", "no_permission", true,
		  "app: the agent's user may not read the file" },
		{ "/opt/app", NULL, true,
		  "stacks end in app, which was built without frame pointers: "
		  "-fno-omit-frame-pointer keeps them" },
		{ "[anon]", "no_perf_map", true,
		  "[anon]: compiled at run time, and no /tmp/perf-PID.map names it: start the "
		  "program so that it writes one (a JVM that runs, JDK 17 and later: jcmd PID "
		  "Compiler.perfmap)" },
		{ "[anon]", NULL, true, NULL },
		{ "kernel", NULL, true, NULL },
		{ "/opt/app", NULL, false, NULL },
		{ "/opt/app", "what nobody knows", false, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[SUMMARY_ADVICE_BYTES] = "";
		bool some = module_advice(cases[i].module, cases[i].why, cases[i].broken, text);

		assert_int_equal(some, cases[i].sentence != NULL);
		if (some)
			assert_string_equal(text, cases[i].sentence);
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
			assert_true(module_advice(path, whys[i], true, text));
			assert_true(strlen(text) < sizeof(text));
		}
}

UNIT_TESTS(module_advice)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
