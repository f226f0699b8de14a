/* SPDX-License-Identifier: BSD-2-Clause */
/* command.h: the commands of `trocar`: one constant table that prints its own help. */
#ifndef TROCAR_CTL_COMMAND_H
#define TROCAR_CTL_COMMAND_H

#include <stdio.h>

enum command_exit {
	COMMAND_FINE = 0,
	COMMAND_FAILED = 1,	 /* the agent said no, or a file could not be read */
	COMMAND_USAGE = 2,	 /* the command line */
	COMMAND_UNREACHABLE = 3, /* no agent at the socket, or no answer from it */
};

/* Runs the command line; results go to `out`, words of failure to `err`. enum command_exit. */
int command_main(int argc, char *argv[], FILE *out, FILE *err);

#endif
