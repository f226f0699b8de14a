/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * symbolize.h: the command that adds names to frames of event lines afterwards, from files of the
 * same build.
 */
#ifndef TROCAR_CTL_SYMBOLIZE_SYMBOLIZE_H
#define TROCAR_CTL_SYMBOLIZE_SYMBOLIZE_H

#include "ctl/cli/options.h"

#define SYMBOLIZE_OPEN 16 /* stacks with missing parts */

/* Returns enum command_exit. */
int symbolize_call(const struct options *options, const char *const *arguments);

#endif
