/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profile_words.h: detects a process name that was given instead of a PID, so that it is not run as
 * a command.
 */
#ifndef TROCAR_CTL_CLIENT_PROFILE_WORDS_H
#define TROCAR_CTL_CLIENT_PROFILE_WORDS_H

#include "ctl/cli/options.h"

/*
 * Returns whether the words of a command (NULL ends them) were given after "--". If not, prints the
 * right form on options->err: the PID of the process with this name, or the "--".
 */
bool profile_words_command(const struct options *options, const char *const *arguments);

#endif
