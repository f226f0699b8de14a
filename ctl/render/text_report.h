/* SPDX-License-Identifier: BSD-2-Clause */
/* text_report.h: the command that tells each session as text for a terminal. */
#ifndef TROCAR_CTL_RENDER_TEXT_REPORT_H
#define TROCAR_CTL_RENDER_TEXT_REPORT_H

#include "ctl/cli/options.h"

/* Returns enum command_exit. */
int text_report_call(const struct options *options, const char *const *arguments);

#endif
