/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own_agent.h: runs an agent for the time of one command, if root runs the command and no agent
 * runs. A child process, the supervisor (keeper.h), starts the agent and removes it once the
 * command stops it or exits.
 */
#ifndef TROCAR_CTL_CLIENT_OWN_AGENT_H
#define TROCAR_CTL_CLIENT_OWN_AGENT_H

#include "ctl/cli/options.h"
#include "ctl/client/keeper.h"

struct own_agent {
	int life_fd; /* the agent lives while this is open; -1: no agent */
	int news_fd; /* one byte: the agent answers; end of file: everything is removed */
	char socket[KEEPER_PATH_BYTES];
};

#define OWN_AGENT_NONE                       \
	{                                    \
		.life_fd = -1, .news_fd = -1 \
	}

/*
 * Returns whether the command may start its own agent after client_open failed with `error`: no
 * agent runs at the default socket, the options name no other socket, and the caller is root.
 */
bool own_agent_fits(const struct options *options, int error);

/*
 * Starts an agent, and reports this on `options->err`; the agent answers only root at
 * ret_agent->socket. `program` is the file that is mostly captured ("": not known); the agent may
 * read that file's folder for names. Call it before confine_now, because it runs programs. Returns
 * enum command_exit; a failure is printed. End it with own_agent_done, also after a failure.
 */
int own_agent_start(const struct options *options, const char *program,
		    struct own_agent *ret_agent);

/* Stops the agent and waits until all parts of it are removed. */
void own_agent_done(struct own_agent *agent);

#endif
