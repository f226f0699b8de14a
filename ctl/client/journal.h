/* SPDX-License-Identifier: BSD-2-Clause */
/* journal.h: reads the agent's lines from the systemd journal instead of a file. */
#ifndef TROCAR_CTL_CLIENT_JOURNAL_H
#define TROCAR_CTL_CLIENT_JOURNAL_H

#include "ctl/cli/options.h"

/*
 * Makes the output of journalctl(1) for the unit trocar-consumer this process's standard input.
 * Call it before the program gives up unneeded privileges (confine.h). Returns enum command_exit;
 * faults are printed on the options' `err`, faults of journalctl itself on standard error.
 */
int journal_read(const struct options *options);

#endif
