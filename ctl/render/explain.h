/* SPDX-License-Identifier: BSD-2-Clause */
/* explain.h: the command that explains in sentences why each session's service stalled. */
#ifndef TROCAR_CTL_RENDER_EXPLAIN_H
#define TROCAR_CTL_RENDER_EXPLAIN_H

#include "ctl/cli/options.h"

/* Returns enum command_exit. */
int explain_call(const struct options *options, const char *const *arguments);

#endif
