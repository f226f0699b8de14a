/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * brief.h: the report of one session on one screen: the answer with its chain, where blocked
 * threads wait, the timeline, and the quality of the evidence.
 */
#ifndef TROCAR_CTL_RENDER_BRIEF_H
#define TROCAR_CTL_RENDER_BRIEF_H

#include "ctl/render/session_lines.h"

#define BRIEF_LINES   37 /* with those about other sessions and other lines: 40 */
#define BRIEF_COLUMNS 80 /* of unlimited lines */

/* The end of each line is kept free for the mark of a text that is cut there. */
#define BRIEF_CUT	  " ..."
#define BRIEF_CUT_COLUMNS 4u

/*
 * Prints at most BRIEF_LINES lines on the session's stream, for the present terminal, whose lines
 * have a limit. `functions`: the table of the functions that ran, as text, for the lines that are
 * left; NULL: none. `before` each line: WRAP_NOT if the stream breaks lines, else "". Errors are in
 * s->error.
 */
void brief_write(struct session_lines *s, const char *functions, const char *before);

#endif
