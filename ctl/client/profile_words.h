/* SPDX-License-Identifier: BSD-2-Clause */
/* profile_words.h: a name where a PID is wanted is a mistake, not a command to be run. */
#ifndef TROCAR_CTL_CLIENT_PROFILE_WORDS_H
#define TROCAR_CTL_CLIENT_PROFILE_WORDS_H

#include "ctl/cli/options.h"

/*
 * Whether the words of a command, NULL behind them, came behind "--". False after printing the
 * right form on options->err: the PID that has this name, or the "--".
 */
bool profile_words_command(const struct options *options, const char *const *arguments);

#endif
