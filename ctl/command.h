/* SPDX-License-Identifier: BSD-2-Clause */
/* command.h: the commands of `trocar`: one constant table that prints its own help. */
#ifndef TROCAR_CTL_COMMAND_H
#define TROCAR_CTL_COMMAND_H

#include <stdio.h>

#include "ctl/cli/command_exit.h"

/*
 * Runs the command line; results go to `out`, messages about failures to `err`. Returns enum
 * command_exit.
 */
int command_main(int argc, char *argv[], FILE *out, FILE *err);

#endif
