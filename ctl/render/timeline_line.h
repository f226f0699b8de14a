/* SPDX-License-Identifier: BSD-2-Clause */
/* timeline_line.h: reads one event line `timeline` as numbers, for drawing. */
#ifndef TROCAR_CTL_RENDER_TIMELINE_LINE_H
#define TROCAR_CTL_RENDER_TIMELINE_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "shared/json/json_node.h"

#define TIMELINE_LINE_SLOTS 121 /* docs/schema/timeline.json */

enum timeline_part {
#define PART(id, json, help) TIMELINE_##id,
#include "shared/abi/account_parts.def"
#undef PART
	TIMELINE_PARTS_
};

struct timeline_line {
	const struct json_node *pool; /* name of the pool; NULL: the line of all other pools */
	uint64_t pid, others;
	double slot_ms;
	uint32_t slots, before; /* number of slots; those before the trigger */
	double looks[TIMELINE_LINE_SLOTS];
	double ms[TIMELINE_PARTS_][TIMELINE_LINE_SLOTS]; /* by slot */
};

/*
 * Reads a line, and borrows its nodes. Members beyond the limits of a line are dropped, and missing
 * members are 0. False: the line has no slots.
 */
bool timeline_line_read(const struct json_node *line, struct timeline_line *ret_line);

/* Returns the word of a part: "running", "lock", ... */
const char *timeline_line_word(enum timeline_part part);

/* Returns whether the part is idle or asleep. */
bool timeline_line_is_rest(enum timeline_part part);

/* Returns the time of a part in all slots, in ms. */
double timeline_line_sum(const struct timeline_line *line, enum timeline_part part);

/* Returns the largest known number of threads at one time; at least 1. */
double timeline_line_threads(const struct timeline_line *line);

#endif
