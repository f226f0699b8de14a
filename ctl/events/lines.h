/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lines.h: reads the lines of a file, compressed or not, or of a pipe, one at a time, in bounded
 * memory.
 */
#ifndef TROCAR_CTL_EVENTS_LINES_H
#define TROCAR_CTL_EVENTS_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/events/unpack.h"

#define LINES_MAX_BYTES (1u << 20) /* of one line; the agent writes 8096 by default */

struct lines {
	struct unpack unpack;
	char *data;
	size_t at, bytes; /* not returned yet: [at, bytes) */
	uint64_t number;  /* of the last returned line, from 1 */
	bool end;
};

/* One line; its bytes are valid until the next call. */
struct lines_line {
	const char *text; /* without the '\n' */
	size_t bytes;
	bool whole;    /* the line ended in '\n' */
	bool too_long; /* it has more than LINES_MAX_BYTES and was skipped: no text */
};

/* `fd` is borrowed. 0 or -ENOMEM. Release with lines_done. */
int lines_init(struct lines *l, int fd);
void lines_done(struct lines *l);

/*
 * Reads the next line. Returns 1; 0 at the end; else the value of unpack_read. May block as
 * read(2).
 */
int lines_next(struct lines *l, struct lines_line *ret_line);

#endif
