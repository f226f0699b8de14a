/* SPDX-License-Identifier: BSD-2-Clause */
/* journal.h: the agent's lines in the systemd journal, in place of a file. */
#ifndef TROCAR_CTL_CLIENT_JOURNAL_H
#define TROCAR_CTL_CLIENT_JOURNAL_H

#include "ctl/cli/options.h"

/*
 * Makes what journalctl(1) prints of the unit trocar-consumer this process's standard input. Call
 * it before the program gives up what it does not need (confine.h). Returns enum command_exit; what
 * is wrong is said on the options' `err`, by journalctl itself on standard error.
 */
int journal_read(const struct options *options);

#endif
