/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * own_agent.h: an agent for the time of one command, where root has none running. A child, the
 * keeper (keeper.h), makes it and takes it away again once the command ends it, or is gone.
 */
#ifndef TROCAR_CTL_CLIENT_OWN_AGENT_H
#define TROCAR_CTL_CLIENT_OWN_AGENT_H

#include "ctl/cli/options.h"
#include "ctl/client/keeper.h"

struct own_agent {
	int life_fd; /* the keeper's agent lives as long as this is open; -1: there is none */
	int news_fd; /* a byte when the agent answers, the end when all is taken away */
	char socket[KEEPER_PATH_BYTES];
};

#define OWN_AGENT_NONE                       \
	{                                    \
		.life_fd = -1, .news_fd = -1 \
	}

/*
 * Whether an agent of its own may stand in for the one that client_open(`error`) did not find: none
 * runs where one is by default, no other is named, and the caller is root.
 */
bool own_agent_fits(const struct options *options, int error);

/*
 * Starts one, and reports this on `options->err`; it answers at ret_agent->socket to root alone.
 * What is captured is most of all the file `program` ("": not known); it may read the process's
 * folder for names. Before confine_now: it runs programs. Returns enum command_exit; the failure is
 * printed. End it with own_agent_done, also after a failure.
 */
int own_agent_start(const struct options *options, const char *program,
		    struct own_agent *ret_agent);

/* Ends it and waits until nothing of it is left. */
void own_agent_done(struct own_agent *agent);

#endif
