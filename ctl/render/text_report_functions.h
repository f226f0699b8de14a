/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_report_functions.h: the part of the text report about the functions that ran, and that
 * waited.
 */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_FUNCTIONS_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_FUNCTIONS_H

#include <stdio.h>

#include "ctl/view/view.h"

/* Columns of VIEW_PHASES. */
enum { TEXT_REPORT_EARLIER, TEXT_REPORT_DURING };

/* Shares of fewer samples are marked as rough, as in session.end. */
#define TEXT_REPORT_FEW_SAMPLES 30

/* Samples of the view, by column of VIEW_PHASES. */
struct text_report_samples {
	uint64_t count[TREE_COLUMNS];
};

/*
 * Prints at most `top` functions of the tree, which is of VIEW_PHASES. Columns: the share of the
 * time during the stall with the function on the stack, the share before, the change of its time
 * per second, and the share in the function itself. 0, -ENOMEM, -ENOSPC.
 */
int text_report_functions(struct view *view, const struct tree *tree,
			  const struct text_report_samples *samples, uint64_t top, FILE *out);

/*
 * Prints the stacks with the most time during the stall: first the innermost function of the
 * program, then its callers. `what` is the state of these threads. 0 or -ENOMEM.
 */
int text_report_functions_paths(const struct view *view, const struct tree *tree, const char *what,
				FILE *out);

#endif
