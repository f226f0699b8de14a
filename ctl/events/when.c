/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/events/event.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define TEXT_BYTES  40
#define SECONDS_MAX (100ULL * 366 * 86400)

static const struct {
	const char *name;
	uint64_t seconds;
} units[] = {
	{ "s", 1 },	   { "sec", 1 },     { "second", 1 },	{ "seconds", 1 },  { "m", 60 },
	{ "min", 60 },	   { "minute", 60 }, { "minutes", 60 }, { "h", 3600 },	   { "hour", 3600 },
	{ "hours", 3600 }, { "d", 86400 },   { "day", 86400 },	{ "days", 86400 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "-1h", "-90min", "-1h30min", "1h ago": this long before now. */
static int parse_ago(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t seconds = 0;
	bool minus = *text == '-';
	const char *at = text + minus;

	while (is_digit(*at)) {
		char number[24];
		size_t digits = strspn(at, "0123456789"), letters, i = 0;
		uint64_t count;

		snprintf(number, sizeof(number), "%.*s", (int)MIN(digits, (size_t)20), at);
		if (digits > 20 || parse_u64(number, 0, SECONDS_MAX, &count) < 0)
			return -EINVAL;
		at += digits;
		at += strspn(at, " ");
		letters = strspn(at, "abcdefghijklmnopqrstuvwxyz");
		while (i < ARRAY_SIZE(units) && (strlen(units[i].name) != letters ||
						 strncmp(units[i].name, at, letters) != 0))
			i++;
		if (i == ARRAY_SIZE(units))
			return -EINVAL;
		seconds += count * units[i].seconds;
		at += letters;
		at += strspn(at, " ");
	}
	if (at == text + minus || seconds > now_ns / NSEC_PER_SEC ||
	    (!minus && strcmp(at, "ago") != 0) || (minus && *at))
		return -EINVAL;
	*ret_ns = now_ns - seconds * NSEC_PER_SEC;
	return 0;
}

/* Returns the beginning of the local day that is `days` days from today. */
static int find_day(uint64_t now_ns, int days, uint64_t *ret_ns)
{
	time_t now = (time_t)(now_ns / NSEC_PER_SEC), at;
	struct tm tm;

	if (!localtime_r(&now, &tm))
		return -EINVAL;
	tm.tm_mday += days;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	at = mktime(&tm);
	if (at < 0)
		return -EINVAL;
	*ret_ns = (uint64_t)at * NSEC_PER_SEC;
	return 0;
}

/* Reads two digits. False: there are other characters. */
static bool take_two(const char *text, int most, int *ret_number)
{
	if (!is_digit(text[0]) || !is_digit(text[1]))
		return false;
	*ret_number = (text[0] - '0') * 10 + text[1] - '0';
	return *ret_number <= most;
}

/*
 * Removes "+02:00", "-0530" or "+02" from the end of a time: *ret_s is the offset east of UTC.
 * False: there is no offset.
 */
static bool take_offset(char *text, int64_t *ret_s)
{
	char *time = strpbrk(text, "T "), *sign = time ? strpbrk(time, "+-") : NULL;
	int hours, minutes = 0;
	const char *rest;

	if (!sign || !take_two(sign + 1, 14, &hours))
		return false;
	rest = sign + 3;
	rest += *rest == ':';
	if (*rest && (!take_two(rest, 59, &minutes) || rest[2]))
		return false;
	*ret_s = (hours * 3600 + minutes * 60) * (*sign == '-' ? -1 : 1);
	*sign = 0;
	return true;
}

/* Converts a time, which event_time parsed as UTC, as a time of the local time zone. */
static int from_local(uint64_t *ns)
{
	time_t at = (time_t)(*ns / NSEC_PER_SEC);
	struct tm tm;

	if (!gmtime_r(&at, &tm))
		return -EINVAL;
	tm.tm_isdst = -1;
	at = mktime(&tm);
	if (at < 0)
		return -EINVAL;
	*ns = (uint64_t)at * NSEC_PER_SEC + *ns % NSEC_PER_SEC;
	return 0;
}

static int parse_date(const char *given, uint64_t *ret_ns)
{
	char text[TEXT_BYTES], *blank;
	int64_t east_s = 0;
	bool offset;
	uint64_t ns;
	size_t bytes;

	if (snprintf(text, sizeof(text), "%s", given) >= (int)sizeof(text))
		return -EINVAL;
	offset = take_offset(text, &east_s);
	bytes = strlen(text);
	blank = strchr(text, ' ');
	if (blank)
		*blank = 'T';
	if (event_time(text, bytes, &ns) < 0)
		return -EINVAL;
	if (offset)
		ns = (uint64_t)((int64_t)ns - east_s * (int64_t)NSEC_PER_SEC);
	else if (text[bytes - 1] != 'Z' && text[bytes - 1] != 'z' && from_local(&ns) < 0)
		return -EINVAL;
	*ret_ns = ns;
	return 0;
}

/* "15:59", "15:59:03": of today. */
static int parse_clock(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	char date[TEXT_BYTES];
	uint64_t day_ns;
	struct tm tm;
	time_t day;

	if (find_day(now_ns, 0, &day_ns) < 0)
		return -EINVAL;
	day = (time_t)(day_ns / NSEC_PER_SEC);
	if (!localtime_r(&day, &tm) || strlen(text) > 8 ||
	    strspn(text, "0123456789:") != strlen(text))
		return -EINVAL;
	snprintf(date, sizeof(date), "%04d-%02d-%02dT%.8s", (tm.tm_year + 1900) % 10000,
		 (tm.tm_mon + 1) % 100, tm.tm_mday % 100, text);
	return parse_date(date, ret_ns);
}

int when_parse(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	if (!strcmp(text, "now")) {
		*ret_ns = now_ns;
		return 0;
	}
	if (!strcmp(text, "today") || !strcmp(text, "yesterday"))
		return find_day(now_ns, *text == 't' ? 0 : -1, ret_ns);
	if (parse_ago(text, now_ns, ret_ns) == 0)
		return 0;
	if (is_digit(text[0]) && is_digit(text[1]) && text[2] == ':')
		return parse_clock(text, now_ns, ret_ns);
	return parse_date(text, ret_ns);
}
