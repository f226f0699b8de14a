/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html.h: the command that writes one page for each selected session: its report and the flame
 * graphs of CPU time and waits. The page needs no network and no script.
 */
#ifndef TROCAR_CTL_RENDER_HTML_H
#define TROCAR_CTL_RENDER_HTML_H

#include "ctl/cli/options.h"

/* Returns enum command_exit. */
int html_call(const struct options *options, const char *const *arguments);

#endif
