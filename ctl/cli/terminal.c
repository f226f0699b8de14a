/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define COLUMNS_MAX 1000

static struct terminal used;

/* ECMA-48 8.3.117, in the 16 colours of every theme. */
static const char *const styles[STYLE_COUNT_] = {
	[STYLE_HEAD] = "\x1b[1m",    [STYLE_QUIET] = "\x1b[2m",	  [STYLE_GOOD] = "\x1b[32m",
	[STYLE_WARN] = "\x1b[33m",   [STYLE_BAD] = "\x1b[31m",	  [STYLE_RUNNING] = "\x1b[32m",
	[STYLE_QUEUE] = "\x1b[33m",  [STYLE_IO] = "\x1b[34m",	  [STYLE_MEMORY] = "\x1b[35m",
	[STYLE_LOCK] = "\x1b[31m",   [STYLE_SLEEP] = "\x1b[2m",	  [STYLE_IDLE] = "\x1b[2m",
	[STYLE_PIPE] = "\x1b[36m",   [STYLE_SOCKET] = "\x1b[36m", [STYLE_CHILD] = "\x1b[36m",
	[STYLE_FAULT] = "\x1b[35m",  [STYLE_OTHER] = "\x1b[37m",  [STYLE_STOPPED] = "\x1b[31m",
	[STYLE_TRACED] = "\x1b[31m", [STYLE_FROZEN] = "\x1b[31m",
};

static void parse_columns(const char *text, uint64_t *columns)
{
	uint64_t number;

	if (text && parse_u64(text, 1, UINT32_MAX, &number) == 0)
		*columns = MIN(number, (uint64_t)COLUMNS_MAX);
}

/* The size of the window is preferred; the environment may be that of another window. */
static unsigned int find_columns(int fd, bool is_one)
{
	uint64_t columns = is_one ? TERMINAL_COLUMNS : 0;
	struct winsize size;

	if (is_one && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		columns = size.ws_col;
	else
		parse_columns(getenv("COLUMNS"), &columns);
	return columns ? MAX((unsigned int)columns, (unsigned int)TERMINAL_COLUMNS_MIN) : 0;
}

static bool has_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

/*
 * The first variable that is set decides, as in setlocale(3), which would open the locale's files.
 */
static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

void terminal_find(FILE *out, struct terminal *ret_terminal)
{
	int fd = fileno(out);

	*ret_terminal = (struct terminal){ 0 };
	if (fd < 0)
		return;
	ret_terminal->is_one = isatty(fd);
	ret_terminal->columns = find_columns(fd, ret_terminal->is_one);
	ret_terminal->colours = ret_terminal->is_one && has_colours();
	ret_terminal->utf8 = is_utf8();
}

void terminal_use(const struct terminal *terminal)
{
	used = *terminal;
}

const struct terminal *terminal_get(void)
{
	return &used;
}

unsigned int terminal_columns(unsigned int otherwise)
{
	return used.columns ? used.columns : otherwise;
}

const char *terminal_on(enum terminal_style style)
{
	return used.colours && styles[style] ? styles[style] : "";
}

const char *terminal_off(void)
{
	return used.colours ? TERMINAL_OFF : "";
}
