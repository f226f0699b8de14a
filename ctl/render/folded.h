/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * folded.h: prints one line per distinct stack, root first, as flamegraph.pl and speedscope read
 * them.
 */
#ifndef TROCAR_CTL_RENDER_FOLDED_H
#define TROCAR_CTL_RENDER_FOLDED_H

#include "ctl/view/view.h"

/* The command. Returns enum command_exit. */
int folded_call(const struct options *options, const char *const *arguments);

/* Prints a view. 0, -ENOMEM, -ENOSPC. */
int folded_view(const struct options *options, struct view *view);

/* Prints "a;b;c", the path of a node at depth `depth`, without a newline. */
void folded_path(const struct tree *tree, const struct labels *labels, uint32_t node,
		 uint32_t depth, bool annotate, FILE *out);

/* Prints the folded lines of column 0 of a sorted tree. */
void folded_print(const struct tree *tree, const struct labels *labels, bool annotate, FILE *out);

#endif
