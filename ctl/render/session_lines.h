/* SPDX-License-Identifier: BSD-2-Clause */
/* session_lines.h: the lines of one session, parsed for the sections of a report. */
#ifndef TROCAR_CTL_RENDER_SESSION_LINES_H
#define TROCAR_CTL_RENDER_SESSION_LINES_H

#include <stdio.h>

#include "ctl/events/store.h"
#include "shared/json/json_tree.h"
#include "shared/tools/cleanup.h"

/* Each section prints on `out`; after the first error its text is of no use. */
struct session_lines {
	const struct store *store;
	const struct store_session *session;
	const struct json_node *start, *end, *pressure; /* NULL: the input has no such line */
	FILE *out;
	int error; /* 0, or the first -ENOMEM or -ENOSPC */
	struct json_tree trees[3];
};

/* Parses the lines of the session with that number. On an error sets s->error. */
void session_lines_open(struct session_lines *s, const struct store *store, uint32_t number,
			FILE *out);
void session_lines_done(struct session_lines *s);

/* Remembers the first error. */
void session_lines_fail(struct session_lines *s, int error);

/*
 * Parses a kept line, which the reader of the file has accepted. Returns its root; NULL: no line
 * (STORE_NONE), or no memory, which is then an error. Release the tree with json_tree_done.
 */
const struct json_node *session_lines_read(struct session_lines *s, uint32_t text,
					   struct json_tree *ret_tree);

/* The position in a list of lines, of which the first `top` are read. */
struct session_lines_step {
	struct session_lines *session;
	const struct store_lines *list;
	uint32_t top, next;
	struct json_tree tree; /* of the last line */
};

/* Returns the next line, valid until the next call; NULL: none, or an error. */
const struct json_node *session_lines_next(struct session_lines_step *step);
void session_lines_end(struct session_lines_step *step);

/* Runs a statement for each of the first `n` lines of a list, of session_lines `s`. */
#define session_lines_for_each(line, s, lines, n)                                              \
	for (_cleanup_(session_lines_end) struct session_lines_step step_ = { .session = (s),  \
									      .list = (lines), \
									      .top = (n) };    \
	     ((line) = session_lines_next(&step_));)

/* Prints a form (member_text.h) for each line of a list. */
void session_lines_put(struct session_lines *s, const struct store_lines *list, const char *form);

/* Prints the headline in a style that begins with `on` and ends with `off`, and id, rule, time. */
void session_lines_head(struct session_lines *s, const char *on, const char *off);

#endif
