/* SPDX-License-Identifier: BSD-2-Clause */
/* The text report with the dummy's section: its line is kept by the store, and printed. */
#include "tests/unit/runner/unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/options.h"
#include "ctl/render/text_report.h"

#define HEAD(type)                                                                              \
	"{\"v\":1,\"type\":\"" type "\",\"ts\":\"2026-11-21T15:59:01.098828602Z\",\"session\":" \
	"\"0000000000000001\",\"rule\":\"api\",\"cgroup\":\"/api\""

static const char lines[] =
	HEAD("session.start") ",\"pre_ms\":0,\"during_ms\":1000,\"hz\":97}\n" HEAD("dummy") ",\"signal\":\"runtime\",\"seen\":42}\n" HEAD(
		"session.end") ",\"duration_ms\":1000,\"pre_ms\":0,\"verdict\":\"complete\","
			       "\"headline\":\"/api was captured\",\"ledger\":{}}\n";

static void test_section(void **state)
{
	char path[] = "/tmp/trocar-unit-dummy-XXXXXX", *text = NULL;
	const char *const arguments[] = { path, NULL };
	struct options options;
	size_t bytes;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
	close(fd);
	/* As on a command line without options. */
	assert_int_equal(options_parse("report", UINT64_MAX, 0, NULL, stdout, stderr, &options), 0);
	options.full = true;
	options.out = open_memstream(&text, &bytes);
	assert_int_equal(text_report_call(&options, arguments), COMMAND_FINE);
	fclose(options.out);
	if (!strstr(text, "dummy: what a signal that no version has counted\n  42 samples\n"))
		fail_msg("no section in: %s", text);
	free(text);
	unlink(path);
}

UNIT_TESTS(dummy_section)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
