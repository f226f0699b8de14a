/* SPDX-License-Identifier: BSD-2-Clause */
/* command_exit.h: the exit statuses of `trocar`, which every command returns. */
#ifndef TROCAR_CTL_CLI_COMMAND_EXIT_H
#define TROCAR_CTL_CLI_COMMAND_EXIT_H

enum command_exit {
	COMMAND_FINE = 0,
	COMMAND_FAILED = 1,	 /* the agent refused, or a file could not be read */
	COMMAND_USAGE = 2,	 /* the command line */
	COMMAND_UNREACHABLE = 3, /* no agent at the socket, or no answer from it */
	COMMAND_HELD = 4,	 /* the agent began no session: cooldown, budget, one runs */
	/* capture --wait: the worst verdict of its sessions, the worse the larger */
	COMMAND_PARTIAL = 5,
	COMMAND_INCONCLUSIVE = 6,
};

#endif
