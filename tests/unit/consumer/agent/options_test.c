/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "consumer/agent/options.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

enum { MAX_ARGUMENTS = 8 };

/* Parses the words up to the first NULL. */
static int parse(const char *const words[], struct options *ret_options)
{
	static char program[] = "trocar-consumer";
	char *argv[MAX_ARGUMENTS + 2] = { program };
	int argc = 1, r;

	for (; argc <= MAX_ARGUMENTS && words[argc - 1]; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc - 1];
	r = options_parse(argc, argv, ret_options);
	return r;
}

#define PARSE(options, ...) parse((const char *const[]){ __VA_ARGS__, NULL }, options)

static void test_defaults(void **state)
{
	struct options o;

	assert_int_equal(PARSE(&o, NULL), 0);
	assert_string_equal(o.rules, "/etc/trocar/rules.json");
	assert_string_equal(o.output, "-");
	assert_string_equal(o.bpf_dir, "/run/trocar/bpf");
	assert_string_equal(o.socket, "/run/trocar/control.sock");
	assert_string_equal(o.broker, "/run/trocar/broker.sock");
	assert_string_equal(o.user, "trocar");
	assert_string_equal(o.group, "trocar");
	assert_string_equal(o.admin_group, "trocar-admin");
	assert_null(o.symbols_path);
	assert_int_equal(o.max_line_bytes, 8096);
	assert_int_equal(o.queue_kib, 4096);
	assert_true(o.rules_watch);
	assert_false(o.journal || o.help || o.version);
}

static const struct {
	const char *name;
	size_t offset;
} texts[] = {
	{ "--rules", offsetof(struct options, rules) },
	{ "--output", offsetof(struct options, output) },
	{ "--bpf-dir", offsetof(struct options, bpf_dir) },
	{ "--socket", offsetof(struct options, socket) },
	{ "--broker", offsetof(struct options, broker) },
	{ "--user", offsetof(struct options, user) },
	{ "--group", offsetof(struct options, group) },
	{ "--admin-group", offsetof(struct options, admin_group) },
	{ "--symbols-path", offsetof(struct options, symbols_path) },
};

static void test_texts(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct options o;
		char equals[64];

		assert_int_equal(PARSE(&o, texts[i].name, "a value"), 0);
		assert_string_equal(*(const char **)((char *)&o + texts[i].offset), "a value");
		/* The first sign of equality ends the name, the others are the value's. */
		snprintf(equals, sizeof(equals), "%s=b=c", texts[i].name);
		assert_int_equal(PARSE(&o, equals), 0);
		assert_string_equal(*(const char **)((char *)&o + texts[i].offset), "b=c");
		assert_int_equal(PARSE(&o, texts[i].name), -EINVAL);
	}
}

static const struct {
	const char *name;
	size_t offset;
	uint64_t min, max;
} numbers[] = {
	{ "--max-line-bytes", offsetof(struct options, max_line_bytes), 4096, 1 << 20 },
	{ "--queue-kib", offsetof(struct options, queue_kib), 64, 1 << 20 },
	{ "--keep-kib", offsetof(struct options, keep_kib), 0, 4096 },
	{ "--recorder-kib", offsetof(struct options, recorder_kib), 64, 1 << 20 },
	{ "--looks-permille", offsetof(struct options, looks_permille), 1, 1000 },
	{ "--symbols-kib", offsetof(struct options, symbols_kib), 1024, 1 << 20 },
	{ "--health-seconds", offsetof(struct options, health_seconds), 0, 86400 },
	{ "--lines-per-minute", offsetof(struct options, lines_per_minute), 10, 1 << 20 },
};

static int parse_number(size_t i, const char *text, uint64_t *ret_number)
{
	struct options o;
	int r = PARSE(&o, numbers[i].name, text);

	if (r == 0)
		*ret_number = *(uint64_t *)((char *)&o + numbers[i].offset);
	return r;
}

static void test_numbers(void **state)
{
	static const char *const bad[] = {
		"", "-1", "0x1000", "4096k", " 4096", "1e4", "99999999999999999999", "nan"
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		uint64_t n = 0;
		char text[32];

		for (int off = -1; off <= 1; off++) {
			snprintf(text, sizeof(text), "%lld", (long long)numbers[i].min + off);
			assert_int_equal(parse_number(i, text, &n), off < 0 ? -EINVAL : 0);
		}
		for (int off = -1; off <= 1; off++) {
			snprintf(text, sizeof(text), "%lld", (long long)numbers[i].max + off);
			assert_int_equal(parse_number(i, text, &n), off > 0 ? -EINVAL : 0);
		}
		assert_int_equal(n, numbers[i].max);
		for (size_t k = 0; k < ARRAY_SIZE(bad); k++)
			assert_int_equal(parse_number(i, bad[k], &n), -EINVAL);
	}
}

static void test_switches(void **state)
{
	struct options o;

	assert_int_equal(PARSE(&o, "--no-rules-watch", "--journal", "--help", "--version"), 0);
	assert_false(o.rules_watch);
	assert_true(o.journal && o.help && o.version);
	assert_int_equal(PARSE(&o, "-h"), 0);
	assert_true(o.help);
}

static void test_several(void **state)
{
	struct options o;

	/* The last one wins, as everywhere. */
	assert_int_equal(PARSE(&o, "--rules", "a", "--queue-kib=64", "--rules=b", "--journal"), 0);
	assert_string_equal(o.rules, "b");
	assert_int_equal(o.queue_kib, 64);
	assert_true(o.journal);
}

static void test_errors(void **state)
{
	static const char *const bad[] = {
		"",	      "-",	  "rules",	  "-r",
		"--rule",     "--ruless", "--rules-",	  "--Rules",
		"--help=yes", "--help=",  "--journal=1",  "--no-rules-watch=true",
		"=",	      "--=x",	  "--queue-kib=",
	};
	struct options o = { .queue_kib = 12345 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (PARSE(&o, bad[i]) != -EINVAL)
			fail_msg("accepted %s", bad[i]);
	/* Nothing changes when a later word is wrong. */
	assert_int_equal(PARSE(&o, "--queue-kib", "100", "--nonsense"), -EINVAL);
	assert_int_equal(o.queue_kib, 12345);
}

/* The help names each option. */
static void test_help(void **state)
{
	_cleanup_free_ char *text = NULL;
	int out = dup(STDOUT_FILENO), file = memfd_create("help", MFD_CLOEXEC);
	size_t bytes;

	assert_true(out >= 0 && file >= 0);
	fflush(stdout);
	assert_true(dup2(file, STDOUT_FILENO) >= 0);
	options_help();
	fflush(stdout);
	assert_true(dup2(out, STDOUT_FILENO) >= 0);
	close(out);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(io_read_fd(file, 1 << 20, &text, &bytes), 0);
	close(file);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_non_null(strstr(text, texts[i].name));
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		assert_non_null(strstr(text, numbers[i].name));
	assert_non_null(strstr(text, "--no-rules-watch"));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 110);
}

static void test_no_broker(void **state)
{
	struct options o;

	assert_int_equal(PARSE(&o, "--broker", "/tmp/broker"), 0);
	assert_string_equal(options_broker(&o), "/tmp/broker");
	assert_int_equal(PARSE(&o, "--broker", "none"), 0);
	assert_string_equal(options_broker(&o), "");
	assert_int_equal(PARSE(&o, "--broker="), 0);
	assert_string_equal(options_broker(&o), "");
}

UNIT_TESTS(options)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_no_broker),
		cmocka_unit_test(test_texts),	 cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_switches), cmocka_unit_test(test_several),
		cmocka_unit_test(test_errors),	 cmocka_unit_test(test_help),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
