/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine.h: the consumer gives up its powers, in this order: user, capabilities, files, system
 * calls. Each step is final. Each says on stderr in one line why it failed.
 */
#ifndef TROCAR_CONSUMER_AGENT_CONFINE_H
#define TROCAR_CONSUMER_AGENT_CONFINE_H

#include <sys/types.h>

#include "consumer/agent/options.h"

struct host;
struct output;
struct policy_self;

/* What a process is confined by; borrowed. */
struct confinement {
	const struct options *options;
	const struct host *host;
	struct output *output;
	struct policy_self *self; /* filled in as read back from the kernel */
};

/* The number of the group that may connect to the control socket. 0 or -ENOENT. */
int confine_socket_group(const struct options *options, gid_t *ret_gid);

/* The number of options->admin_group; (gid_t)-1 when there is no such group: then only root. */
gid_t confine_admin(const struct options *options);

/* As root: becomes options->user, in its group alone. Then no capability in any set, no new ones.
 */
int confine_become(const struct options *options);

/* Landlock: from here on only what the agent must read, and its output. */
int confine_files(const struct confinement *c);

/*
 * The system-call filter, for all threads; then reads back from the kernel what this process is,
 * and refuses to go on when that is more than promised (-EPERM).
 */
int confine_calls(const struct confinement *c);

#endif
