/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flamegraph.h: the command that draws one SVG: the baseline before the stall next to the time
 * during it.
 */
#ifndef TROCAR_CTL_RENDER_FLAMEGRAPH_H
#define TROCAR_CTL_RENDER_FLAMEGRAPH_H

#include "ctl/render/svg.h"

/* Returns enum command_exit. */
int flamegraph_call(const struct options *options, const char *const *arguments);

/* Draws the view as one SVG file; `title` NULL: the session's headline. 0, -ENOMEM, -ENOSPC. */
int flamegraph_draw(struct view *view, const char *title, bool inverted, FILE *out);

/* Returns the head of a column, a new text: "before: 2.5 s, 120 ms on CPU"; NULL: no memory. */
char *flamegraph_head(const struct view *view, const struct tree *tree, enum view_columns columns,
		      unsigned int column, const char *name);

/*
 * Returns a new text with the number of shown samples, their sessions, client and time; NULL: no
 * memory.
 */
char *flamegraph_subtitle(const struct view *view, enum view_columns columns);

#endif
