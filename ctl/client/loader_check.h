/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader_check.h: `trocar check` is the loader's verb `check`: what a load needs is known there,
 * and tried under the loader's own capabilities and system-call filter.
 */
#ifndef TROCAR_CTL_CLIENT_LOADER_CHECK_H
#define TROCAR_CTL_CLIENT_LOADER_CHECK_H

#include "ctl/cli/options.h"

/*
 * Runs `trocar-loader check` (programs.h finds it) and prints its output on options->out; its
 * messages go to stderr. Nothing may be confined before. Returns an enum command_exit:
 * COMMAND_FAILED also where something required is missing.
 */
int loader_check_call(const struct options *options, const char *const *arguments);

#endif
