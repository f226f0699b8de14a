/* SPDX-License-Identifier: BSD-2-Clause */
/* capture.h: `trocar capture`: begins a session at once, for a person, an alert or a probe. */
#ifndef TROCAR_CTL_CLIENT_CAPTURE_H
#define TROCAR_CTL_CLIENT_CAPTURE_H

#include "ctl/cli/options.h"

/*
 * The command takes no words. It prints the session's id; with --wait also its headline once the
 * session has ended. Returns enum command_exit; with --wait the worst verdict of the sessions
 * decides.
 */
int capture_call(const struct options *options, const char *const *arguments);

#endif
