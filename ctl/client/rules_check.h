/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rules_check.h: the command `rules check`: reads a rules file with the agent's own parser, and
 * requests only the rules' matches from the agent, if one runs. Returns enum command_exit.
 */
#ifndef TROCAR_CTL_CLIENT_RULES_CHECK_H
#define TROCAR_CTL_CLIENT_RULES_CHECK_H

#include "ctl/cli/options.h"

int rules_check_call(const struct options *options, const char *const *arguments);

#endif
