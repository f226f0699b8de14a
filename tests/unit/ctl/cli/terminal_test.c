/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/cli/terminal.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static const char *const names[] = { "COLUMNS", "NO_COLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG" };

static int forget(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
	terminal_use(&(struct terminal){ 0 });
	return 0;
}

/* What a terminal of so many columns is; 0: one without a size. */
static struct terminal find(unsigned short columns)
{
	struct winsize size = { .ws_row = 24, .ws_col = columns };
	struct terminal terminal;
	int fd = posix_openpt(O_RDWR | O_NOCTTY);
	FILE *out;

	assert_true(fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0);
	assert_int_equal(ioctl(fd, TIOCSWINSZ, &size), 0);
	out = fdopen(open(ptsname(fd), O_RDWR | O_NOCTTY | O_CLOEXEC), "w");
	assert_non_null(out);
	terminal_find(out, &terminal);
	fclose(out);
	close(fd);
	return terminal;
}

static struct terminal find_file(void)
{
	struct terminal terminal;
	FILE *out = fopen("/dev/null", "we");

	terminal_find(out, &terminal);
	fclose(out);
	return terminal;
}

static void test_columns(void **state)
{
	assert_int_equal(find(132).columns, 132);
	assert_int_equal(find(0).columns, TERMINAL_COLUMNS);
	assert_int_equal(find(12).columns, TERMINAL_COLUMNS_MIN);
	assert_true(find(80).is_one);
	assert_int_equal(find_file().columns, 0);
	assert_false(find_file().is_one);
	setenv("COLUMNS", "90", 1);
	assert_int_equal(find_file().columns, 90);
	assert_int_equal(find(132).columns, 132); /* the window knows better */
	assert_int_equal(find(0).columns, 90);
	setenv("COLUMNS", "9x", 1);
	assert_int_equal(find_file().columns, 0);
	setenv("COLUMNS", "0", 1);
	assert_int_equal(find(0).columns, TERMINAL_COLUMNS);
}

static void test_colours(void **state)
{
	assert_false(find(80).colours); /* no TERM */
	setenv("TERM", "xterm", 1);
	assert_true(find(80).colours);
	assert_false(find_file().colours);
	setenv("NO_COLOR", "", 1); /* no-color.org: present and not empty */
	assert_true(find(80).colours);
	setenv("NO_COLOR", "1", 1);
	assert_false(find(80).colours);
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(find(80).colours);
}

static void test_utf8(void **state)
{
	assert_false(find(80).utf8);
	setenv("LANG", "de_DE.UTF-8", 1);
	assert_true(find(80).utf8);
	assert_true(find_file().utf8);
	setenv("LC_CTYPE", "C", 1);
	assert_false(find(80).utf8);
	setenv("LC_CTYPE", "", 1);
	assert_true(find(80).utf8);
	setenv("LC_ALL", "en_US.utf8", 1);
	setenv("LC_CTYPE", "C", 1);
	assert_true(find(80).utf8);
}

static void test_styles(void **state)
{
	assert_string_equal(terminal_on(STYLE_BAD), "");
	assert_string_equal(terminal_off(), "");
	assert_int_equal(terminal_columns(99), 99);
	terminal_use(&(struct terminal){ .columns = 80, .colours = true });
	assert_string_equal(terminal_on(STYLE_PLAIN), "");
	for (int i = STYLE_HEAD; i < STYLE_COUNT_; i++)
		assert_true(*terminal_on((enum terminal_style)i));
	assert_string_equal(terminal_off(), "\x1b[m");
	assert_int_equal(terminal_columns(99), 80);
}

UNIT_TESTS(terminal)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, forget, forget)
	const struct CMUnitTest tests[] = {
		TEST(columns),
		TEST(colours),
		TEST(utf8),
		TEST(styles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
