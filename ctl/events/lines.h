/* SPDX-License-Identifier: BSD-2-Clause */
/* lines.h: the lines of a file, compressed or not, or a pipe, one at a time, in bounded memory. */
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
	size_t at, bytes; /* what is not given out yet: [at, bytes) */
	uint64_t number;  /* of the line given out last, from 1 */
	bool end;
};

/* One line; its bytes are valid until the next call. */
struct lines_line {
	const char *text; /* without the '\n' */
	size_t bytes;
	bool whole;    /* the '\n' was there */
	bool too_long; /* it has more than LINES_MAX_BYTES and was passed over: no text */
};

/* `fd` is borrowed. 0 or -ENOMEM. Release with lines_done. */
int lines_init(struct lines *l, int fd);
void lines_done(struct lines *l);

/* The next line: 1; 0 at the end; else the value of unpack_read. Waits where read(2) waits. */
int lines_next(struct lines *l, struct lines_line *ret_line);

#endif
