/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report.h: the command that prints each session as text for a terminal. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_H

#include "ctl/cli/options.h"
#include "ctl/view/view.h"

/* Returns enum command_exit. */
int text_report_call(const struct options *options, const char *const *arguments);

/*
 * Prints all selected sessions of the view's input, each on one screen (brief.h); with `full` all
 * of their evidence. `top`: at most so many functions each. Changes the selection of the view. 0,
 * -ENOMEM, -ENOSPC.
 */
int text_report_write(struct view *view, bool full, uint64_t top, FILE *out);

/* Prints all evidence of one session, a number of the store. */
int text_report_write_one(struct view *view, uint32_t session, uint64_t top, FILE *out);

#endif
