/* SPDX-License-Identifier: BSD-2-Clause */
/* `trocar check` with scripts in the loader's place; the loader's own output is compared by
 * tests/unit/loader/load_test.sh. */
#include "tests/unit/runner/unit.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/client/loader_check.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static char path[64];
static char *out, *err;

static int setup(void **state)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/trocar-check-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	setenv("TROCAR_LOADER", path, 1);
	return chmod(path, 0700);
}

static int teardown(void **state)
{
	free(out);
	free(err);
	out = err = NULL;
	return unlink(path);
}

static void write_script(const char *text)
{
	_cleanup_fclose_ FILE *f = fopen(path, "we");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", text);
}

static int run_check(bool json)
{
	struct options options = { .json = json };
	size_t bytes;
	int status;

	free(out);
	free(err);
	options.out = open_memstream(&out, &bytes);
	options.err = open_memstream(&err, &bytes);
	status = loader_check_call(&options, NULL);
	fclose(options.out);
	fclose(options.err);
	return status;
}

static void words_and_output(void **state)
{
	write_script("echo \"$# $*\"");
	assert_int_equal(run_check(false), COMMAND_FINE);
	assert_string_equal(out, "1 check\n");
	assert_int_equal(run_check(true), COMMAND_FINE);
	assert_string_equal(out, "2 check --json\n");
	assert_string_equal(err, "");
}

/* More than a pipe holds. */
static void long_output(void **state)
{
	write_script("head -c 300000 /dev/zero");
	assert_int_equal(run_check(false), COMMAND_FINE);
	assert_string_equal(err, "");
}

static void exit_statuses(void **state)
{
	write_script("echo missing btf; exit 4");
	assert_int_equal(run_check(false), COMMAND_FAILED);
	assert_string_equal(out, "missing btf\n");
	assert_string_equal(err, "");
	write_script("exit 2");
	assert_int_equal(run_check(false), COMMAND_FAILED);
	assert_non_null(strstr(err, "ended with status 2"));
	write_script("kill -KILL $$");
	assert_int_equal(run_check(false), COMMAND_FAILED);
	assert_non_null(strstr(err, "ended by signal 9"));
}

static void cannot_run(void **state)
{
	char expected[256];

	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(run_check(false), COMMAND_FAILED);
	snprintf(expected, sizeof(expected), "trocar: cannot run %s (Permission denied): ", path);
	assert_int_equal(strncmp(err, expected, strlen(expected)), 0);
	setenv("TROCAR_LOADER", "/nowhere/trocar-loader", 1);
	assert_int_equal(run_check(false), COMMAND_FAILED);
	assert_non_null(strstr(err, "cannot run /nowhere/trocar-loader (No such file"));
	assert_non_null(strstr(err, "$TROCAR_LOADER"));
	assert_string_equal(out, "");
}

UNIT_TESTS(loader_check)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(words_and_output, setup, teardown),
		cmocka_unit_test_setup_teardown(long_output, setup, teardown),
		cmocka_unit_test_setup_teardown(exit_statuses, setup, teardown),
		cmocka_unit_test_setup_teardown(cannot_run, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
