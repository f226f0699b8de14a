/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/events/progress.h"
#include "shared/tools/macro.h"

static int master;
static FILE *terminal;

static int setup(void **state)
{
	int slave;

	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return -1;
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	terminal = slave < 0 ? NULL : fdopen(slave, "w");
	return terminal ? 0 : -1;
}

static int teardown(void **state)
{
	fclose(terminal);
	close(master);
	return 0;
}

/* What stands on the terminal since the last call. */
static const char *read_terminal(void)
{
	static char text[512];
	ssize_t n;

	fputc('$', terminal);
	fflush(terminal);
	memset(text, 0, sizeof(text));
	for (size_t at = 0; !strchr(text, '$'); at += (size_t)n) {
		n = read(master, text + at, sizeof(text) - 1 - at);
		assert_true(n > 0);
	}
	*strchr(text, '$') = 0;
	return text;
}

static void test_terminal(void **state)
{
	struct progress p;

	progress_init(&p, terminal, 200 << 20);
	progress_say(&p, 20 << 20);
	assert_string_equal(read_terminal(), ""); /* within the first second */
	p.began_ns -= 2 * NSEC_PER_SEC;
	progress_say(&p, 20 << 20);
	assert_string_equal(read_terminal(), "\rreading: 10 % of 200.0 MiB \033[K");
	progress_say(&p, 30 << 20);
	assert_string_equal(read_terminal(), ""); /* a moment ago */
	progress_next(&p, 40 << 20);
	p.said_ns = 0;
	progress_say(&p, 60 << 20);
	assert_string_equal(read_terminal(), "\rreading: 50 % of 200.0 MiB \033[K");
	progress_done(&p);
	assert_string_equal(read_terminal(), "\r\033[K");
	progress_done(&p);
	assert_string_equal(read_terminal(), "");
}

static void test_without_length(void **state)
{
	struct progress p;

	progress_init(&p, terminal, 0);
	p.began_ns -= 2 * NSEC_PER_SEC;
	progress_say(&p, 3 << 20);
	assert_string_equal(read_terminal(), "\rreading: 3.0 MiB \033[K");
	progress_done(&p);
}

/* A file that grew meanwhile is not more than all of it. */
static void test_more_than_all(void **state)
{
	struct progress p;

	progress_init(&p, terminal, 100);
	p.began_ns -= 2 * NSEC_PER_SEC;
	progress_say(&p, 300);
	assert_string_equal(read_terminal(), "\rreading: 100 % of 100 B \033[K");
}

static void test_elsewhere(void **state)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);
	struct progress p;

	progress_init(&p, file, 100);
	p.began_ns = 0;
	progress_say(&p, 50);
	progress_done(&p);
	fclose(file);
	assert_int_equal(bytes, 0);
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

UNIT_TESTS(progress)
{
	const struct CMUnitTest tests[] = { TEST(terminal), TEST(without_length),
					    TEST(more_than_all), TEST(elsewhere) };

	return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
