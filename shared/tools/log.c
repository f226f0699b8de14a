/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/utf8.h"

#define LINE_BYTES 2048 /* longer lines are built on the heap */

static const char *program = "trocar";
static bool journal;

void log_open(const char *name)
{
	program = name;
}

void log_journal(bool on)
{
	journal = on;
}

/*
 * Replaces control characters and bytes that are not UTF-8. Messages contain foreign text (a comm,
 * a path): a control character in it must not forge a second line, control the reader's terminal or
 * change the displayed order of characters. An 8-bit terminal interprets the byte 0x9b as ESC [.
 */
static void tame_line(char *line, size_t bytes)
{
	uint32_t code;

	for (size_t i = 0, n; i < bytes; i += n) {
		n = utf8_sequence(line + i, bytes - i);
		if (line[i] == '\n' || line[i] == '\t')
			line[i] = ' ';
		else if (!n || utf8_is_control(line + i, n, &code))
			memset(line + i, '?', n ? n : 1);
		n = n ? n : 1;
	}
}

/*
 * Formats into `line` (`space` bytes). Returns the length of the whole line, newline included; 0:
 * it cannot be formatted.
 */
static size_t compose_line(char *line, size_t space, int priority, const char *format, va_list args)
	__attribute__((format(printf, 4, 0)));

static size_t compose_line(char *line, size_t space, int priority, const char *format, va_list args)
{
	char mark[4] = "";
	int head, body;

	if (journal)
		snprintf(mark, sizeof(mark), "<%d>", priority);
	head = snprintf(line, space, "%s%s: ", mark, program);
	if (head < 0 || (size_t)head >= space)
		return 0;
	body = vsnprintf(line + head, space - (size_t)head, format, args);
	if (body < 0)
		return 0;
	return (size_t)head + (size_t)body + 1;
}

/* Writes a line with one write(2), so that lines of several processes do not mix. */
static void emit_line(char *line, size_t bytes)
{
	size_t done = 0;

	tame_line(line, bytes - 1);
	line[bytes - 1] = '\n';
	while (done < bytes) {
		ssize_t n = write(STDERR_FILENO, line + done, bytes - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* the error cannot be reported: stderr is the only output */
		done += (size_t)n;
	}
}

static void say_line(int priority, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

static void say_line(int priority, const char *format, va_list args)
{
	_cleanup_free_ char *heap = NULL;
	char line[LINE_BYTES];
	int saved = errno;
	size_t bytes;
	va_list again;

	va_copy(again, args);
	bytes = compose_line(line, sizeof(line), priority, format, args);
	if (bytes > sizeof(line))
		heap = malloc(bytes);
	if (heap) {
		bytes = compose_line(heap, bytes, priority, format, again);
		emit_line(heap, bytes);
	} else if (bytes > sizeof(line)) {
		memset(line + sizeof(line) - 4, '.', 3);
		emit_line(line, sizeof(line));
	} else if (bytes > 0) {
		emit_line(line, bytes);
	}
	va_end(again);
	errno = saved;
}

void log_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_line(3, format, args);
	va_end(args);
}

void log_warning(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_line(4, format, args);
	va_end(args);
}

void log_info(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_line(6, format, args);
	va_end(args);
}
