/* SPDX-License-Identifier: BSD-2-Clause */
/* command_exit.h: the exit statuses of `trocar`, which every command returns. */
#ifndef TROCAR_CTL_CLI_COMMAND_EXIT_H
#define TROCAR_CTL_CLI_COMMAND_EXIT_H

enum command_exit {
	COMMAND_FINE = 0,
	COMMAND_FAILED = 1,	 /* the agent refused, or a file could not be read */
	COMMAND_USAGE = 2,	 /* the command line is wrong */
	COMMAND_UNREACHABLE = 3, /* no agent at the socket, or no answer from it */
	COMMAND_HELD = 4, /* the agent began no session: cooldown, budget, or a session runs */
	/* capture --wait: the worst verdict of its sessions; a larger value is worse */
	COMMAND_PARTIAL = 5,
	COMMAND_INCONCLUSIVE = 6,
};

#endif
