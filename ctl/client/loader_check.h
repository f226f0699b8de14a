/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader_check.h: `trocar check` is the loader's verb `check`: what a load needs is known there,
 * and tried under the loader's own capabilities and system-call filter.
 */
#ifndef TROCAR_CTL_CLIENT_LOADER_CHECK_H
#define TROCAR_CTL_CLIENT_LOADER_CHECK_H

#include "ctl/cli/options.h"

/* Where the loader is: what $TROCAR_LOADER says, or where it is installed. */
const char *loader_check_path(void);

/*
 * Runs `trocar-loader check`, from $TROCAR_LOADER or from where it is installed, and prints on
 * options->out what it prints; its messages go to stderr. Nothing may be confined before. Returns
 * an enum command_exit: COMMAND_FAILED also where something required is missing.
 */
int loader_check_call(const struct options *options, const char *const *arguments);

#endif
