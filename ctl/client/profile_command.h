/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profile_command.h: runs a command in a new cgroup, for a caller that captures that cgroup. There
 * are three processes: this one, the command, and a process that calls the agent and gives up all
 * other rights before its first answer (confine.h).
 */
#ifndef TROCAR_CTL_CLIENT_PROFILE_COMMAND_H
#define TROCAR_CTL_CLIENT_PROFILE_COMMAND_H

#include "ctl/cli/options.h"

/*
 * Returns whether the words of a command (NULL ends them) were given after "--". If not, the first
 * one may be a process name instead of a PID: prints the right form on options->err, which is the
 * PID of the process with this name, or the "--".
 */
bool profile_command_given(const struct options *options, const char *const *arguments);

/*
 * Captures `cgroup` (a path below the cgroup2 mount), in which the file `program` will run, until
 * SIGTERM, and prints the result; writes a byte to `started_fd` once the session runs. Returns enum
 * command_exit.
 */
typedef int (*profile_command_capture)(const struct options *options, const char *cgroup,
				       const char *program, int started_fd);

/*
 * Runs `command` (NULL ends it) with its output on standard error while `capture` runs. Returns the
 * value of `capture`, or COMMAND_FAILED after printing why the command could not be run.
 */
int profile_command_run(const struct options *options, const char *const *command,
			profile_command_capture capture);

#endif
