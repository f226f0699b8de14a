/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack_lines.h: rewrites one stack of event lines: its frames change, and the number of its lines
 * may change. Its other members stay.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_STACK_LINES_H
#define TROCAR_CTL_SYMBOLIZE_STACK_LINES_H

#include <stdint.h>
#include <stdio.h>

#include "ctl/events/event.h"
#include "ctl/events/store.h"
#include "ctl/symbolize/offline_symbols.h"
#include "shared/json/jsonw.h"

#define STACK_LINES_MAX_BYTES (16u << 20) /* of one stack's text */

struct stack_lines {
	uint64_t next, parts;	       /* the next part, 0: a free place; and the number of parts */
	struct jsonw session, id;      /* as written in lines */
	struct jsonw first, later;     /* members of its first line, and of its later lines */
	struct jsonw frames;	       /* an open array */
	struct jsonw original;	       /* its lines as they were read */
	size_t ends[STORE_FRAMES_MAX]; /* end of each frame in `frames` */
	size_t n;
	uint64_t count, unnamed;
	bool in_kernel; /* the previous frame was a kernel frame */
};

void stack_lines_init(struct stack_lines *l);
void stack_lines_done(struct stack_lines *l);

/* Forgets the stack; the place is free. */
void stack_lines_reset(struct stack_lines *l);

/* Begins with the first line of a stack. 0, -EBADMSG, -ENOMEM. */
int stack_lines_begin(struct stack_lines *l, const struct event *event, const char *line,
		      size_t bytes);

/* Keeps another line of the stack, of `bytes` bytes, unchanged. */
void stack_lines_keep(struct stack_lines *l, const char *line, size_t bytes);

/* Returns whether the event is a part of this stack. */
bool stack_lines_is(const struct stack_lines *l, const struct event *event);

/*
 * Returns whether the next frame is a return address. It is not if the kernel or the sample
 * interrupted the program there (docs/events.md).
 */
bool stack_lines_is_caller(const struct stack_lines *l, const struct event_frame *frame);

/*
 * Appends a frame: its text unchanged, or with the found names. 0, -EBADMSG; -E2BIG beyond
 * STORE_FRAMES_MAX frames.
 */
int stack_lines_frame(struct stack_lines *l, const struct event_frame *frame, const char *text,
		      size_t bytes, const struct offline_frame *found);

/*
 * Writes the stack as lines of at most `max_bytes`, each with at least one frame. `number` is its
 * number among the stacks that were one line before. 0, -ENOMEM, -EMSGSIZE.
 */
int stack_lines_write(struct stack_lines *l, size_t max_bytes, uint64_t number, FILE *out);

#endif
