/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader_check.h: `trocar check` runs the loader's verb `check`: the loader knows the requirements
 * of a load, and tests them under its own capabilities and system-call filter.
 */
#ifndef TROCAR_CTL_CLIENT_LOADER_CHECK_H
#define TROCAR_CTL_CLIENT_LOADER_CHECK_H

#include "ctl/cli/options.h"

/*
 * Runs `trocar-loader check` (programs.h finds it) and prints its output on options->out; its
 * messages go to stderr. Call it before confine_now. Returns an enum command_exit: COMMAND_FAILED
 * also if a required part is missing.
 */
int loader_check_call(const struct options *options, const char *const *arguments);

#endif
