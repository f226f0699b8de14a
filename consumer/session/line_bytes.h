/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * line_bytes.h: limits the bytes of stacks that sessions write. The watched program chooses the
 * names in them and their length, so a limit on the number of lines is not enough. Each session has
 * a limit, and each owner has one per hour. Report thread only; makes no system call.
 */
#ifndef TROCAR_CONSUMER_SESSION_LINE_BYTES_H
#define TROCAR_CONSUMER_SESSION_LINE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/rules/budget.h"

#define LINE_BYTES_HOUR	   ((uint64_t)256 << 20) /* of one owner */
#define LINE_BYTES_SESSION LINE_BYTES_HOUR
#define LINE_BYTES_NAMED   ((uint64_t)8 << 20)	 /* of a session, with names */
#define LINE_BYTES_LEAST   ((uint64_t)256 << 10) /* once its owner's hour is used up */
#define LINE_BYTES_OWNERS  256			 /* with their own budget; all others share one */

/* The bytes that owners have written in the last hour. All 0 before. */
struct line_bytes {
	struct {
		uint64_t owner; /* 0: free */
		struct budget kib;
	} owners[LINE_BYTES_OWNERS + 1]; /* the last one is shared */
};

/* Returns the number of bytes that a session of `owner` (a hash, not 0) may write now. */
uint64_t line_bytes_left(struct line_bytes *b, uint64_t owner, uint64_t now_ns);

/* Counts the bytes that a session of `owner` has written. */
void line_bytes_spend(struct line_bytes *b, uint64_t owner, uint64_t now_ns, uint64_t bytes);

/* The bytes of one session, written and allowed. */
struct line_allowance {
	uint64_t max, used;
};

/*
 * Returns whether frames are to be written without names, because half of the bytes, or the bytes
 * for names, are used up. The rest is for the following stacks: module and offset are enough for
 * `trocar symbolize`.
 */
static inline bool line_bytes_is_short(const struct line_allowance *a)
{
	return a->used > a->max / 2 || a->used > LINE_BYTES_NAMED;
}

/* Counts `bytes` and returns true if they are within the limit; else returns false. */
static inline bool line_bytes_take(struct line_allowance *a, size_t bytes)
{
	if (bytes > a->max - a->used)
		return false;
	a->used += bytes;
	return true;
}

#endif
