/* SPDX-License-Identifier: BSD-2-Clause */
/* diff.h: the command that compares two files, or the phases of one, by time. */
#ifndef TROCAR_CTL_RENDER_DIFF_H
#define TROCAR_CTL_RENDER_DIFF_H

#include "ctl/cli/options.h"

/* Returns enum command_exit. */
int diff_call(const struct options *options, const char *const *arguments);

#endif
