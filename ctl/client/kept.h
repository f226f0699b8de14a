/* SPDX-License-Identifier: BSD-2-Clause */
/* kept.h: reads the lines of a session that the agent still keeps, instead of a file. */
#ifndef TROCAR_CTL_CLIENT_KEPT_H
#define TROCAR_CTL_CLIENT_KEPT_H

#include "ctl/cli/options.h"

/*
 * Asks the agent for the lines of the session with an id that begins with `session`, NULL for the
 * last session that ended, and makes them this process's standard input. Returns enum command_exit;
 * faults and missing lines are printed on the options' `err`.
 */
int kept_read(const struct options *options, const char *session);

/* The command `show`: prints the report of a kept session. Returns enum command_exit. */
int kept_show_call(const struct options *options, const char *const *arguments);

#endif
