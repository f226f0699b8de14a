/* SPDX-License-Identifier: BSD-2-Clause */
/* profile.h: the command that captures at once, waits, and prints folded stacks. */
#ifndef TROCAR_CTL_CLIENT_PROFILE_H
#define TROCAR_CTL_CLIENT_PROFILE_H

#include "ctl/cli/options.h"

/* Returns enum command_exit. */
int profile_call(const struct options *options, const char *const *arguments);

#endif
