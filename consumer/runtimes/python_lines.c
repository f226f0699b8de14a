/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/runtimes/python_lines.h"

#include <stdbool.h>

#define LINES_3_10 0x030a
#define LINES_3_11 0x030b

#define NO_LINE_3_10 (-128) /* the distance of a range without a line */
#define UNIT	     2	    /* bytes of an instruction unit */

/* The kinds of entries of 3.11 (enum _PyCodeLocationInfoKind). Below: a short form, same line. */
enum location {
	LOCATION_ONE_LINE = 10, /* the distance is the kind less this */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* The bytes that are left of a table. */
struct cursor {
	const uint8_t *at, *end;
};

/* Returns the line, or 0 if it is none. */
static int32_t check_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

/* Pairs of bytes: the distance to the next instruction, and that of its line. */
static int32_t find_pairs(struct cursor c, bool cut, int32_t line, int64_t at)
{
	int64_t address = 0, now = line;

	for (; c.end - c.at >= 2; c.at += 2) {
		address += c.at[0];
		if (address > at)
			return check_line(now);
		now += (int8_t)c.at[1];
	}
	return cut ? 0 : check_line(now);
}

/* Pairs of bytes: the length of a range, and the distance of its line from the line before. */
static int32_t find_ranges(struct cursor c, int32_t line, int64_t at)
{
	int64_t end = 0, now = line;

	for (; c.end - c.at >= 2; c.at += 2) {
		int8_t distance = (int8_t)c.at[1];
		bool has_line = distance != NO_LINE_3_10;

		end += c.at[0];
		if (has_line)
			now += distance;
		if (at < end)
			return has_line ? check_line(now) : 0;
	}
	return 0;
}

/* Reads a number of six bits a byte, the lowest first. Returns false at the end of the table. */
static bool read_number(struct cursor *c, uint32_t *ret_number)
{
	uint32_t number = 0, shift = 0;
	uint8_t byte;

	do {
		if (c->at == c->end || shift > 30)
			return false;
		byte = *c->at++;
		number |= (uint32_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	*ret_number = number;
	return true;
}

/* Reads the signed distance of an entry's line, and skips the rest of the entry. */
static bool read_location(struct cursor *c, uint8_t kind, int64_t *ret_distance)
{
	uint32_t number, skipped = 0;

	*ret_distance = 0;
	if (kind == LOCATION_NONE)
		return true;
	if (kind == LOCATION_LONG || kind == LOCATION_NO_COLUMNS) {
		if (!read_number(c, &number))
			return false;
		*ret_distance = number & 1 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
		/* The last line and both columns. */
		for (int i = 0; kind == LOCATION_LONG && i < 3; i++)
			if (!read_number(c, &number))
				return false;
		return true;
	}
	if (kind >= LOCATION_ONE_LINE)
		*ret_distance = kind - LOCATION_ONE_LINE;
	skipped = kind >= LOCATION_ONE_LINE ? 2 : 1;
	if ((size_t)(c->end - c->at) < skipped)
		return false;
	c->at += skipped;
	return true;
}

static int32_t find_locations(struct cursor c, int32_t line, int64_t at)
{
	int64_t end = 0, now = line, distance;

	while (c.at < c.end) {
		uint8_t byte = *c.at++, kind = byte >> 3 & 15;

		end += (int64_t)((byte & 7) + 1) * UNIT;
		if (!(byte & 128) || !read_location(&c, kind, &distance))
			return 0;
		now += distance;
		if (at < end)
			return kind == LOCATION_NONE ? 0 : check_line(now);
	}
	return 0;
}

int32_t python_lines_find(uint32_t version, const struct python_table *table, int32_t first_line,
			  int64_t at)
{
	struct cursor c = { table->bytes, table->bytes + table->count };

	if (at < 0)
		return check_line(first_line);
	if (version < LINES_3_10)
		return find_pairs(c, table->cut, first_line, at);
	if (version < LINES_3_11)
		return find_ranges(c, first_line, at);
	return find_locations(c, first_line, at);
}
