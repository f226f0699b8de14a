/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine.h: drops the consumer's privileges, in this order: user, capabilities, files, system
 * calls. Each step is final, and logs one line on stderr if it fails.
 */
#ifndef TROCAR_CONSUMER_AGENT_CONFINE_H
#define TROCAR_CONSUMER_AGENT_CONFINE_H

#include <sys/types.h>

#include "consumer/agent/options.h"

struct host;
struct output;
struct policy_self;
struct rules_file;

/* How to confine the process; borrowed. */
struct confinement {
	const struct options *options;
	const struct host *host;
	struct output *output;
	const struct rules_file *rules;
	struct policy_self *self; /* filled in from the kernel */
};

/* Returns the group that may connect to the control socket. 0 or -ENOENT. */
int confine_socket_group(const struct options *options, gid_t *ret_gid);

/*
 * Returns the number of options->admin_group; (gid_t)-1 if that group does not exist, and then only
 * root is admin.
 */
gid_t confine_admin(const struct options *options);

/*
 * If started as root: becomes options->user, with its group only. In every case empties every
 * capability set, including the bounding set, and sets no_new_privs (policy_harden). Returns 0 or
 * -errno.
 */
int confine_become(const struct options *options);

/* Restricts files by Landlock to those that the agent must read, and its output. */
int confine_files(const struct confinement *c);

/*
 * Installs the system-call filter for all threads. Then reads the process's privileges back from
 * the kernel; returns -EPERM if they exceed the promised ones.
 */
int confine_calls(const struct confinement *c);

#endif
