/* SPDX-License-Identifier: BSD-2-Clause */
/* session_stop.h: ends a session before its time on a client's request. Main thread only. */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_STOP_H
#define TROCAR_CONSUMER_SESSION_SESSION_STOP_H

#include "consumer/session/session.h"

/*
 * Has the running session of that id end with the next drain, with all that a session has which
 * ends by itself; its last line has the client. Returns 0, also where its end has come already;
 * -ENOENT: no such session runs.
 */
int session_stop(struct sessions *all, uint64_t id, const struct session_stopped *by);

#endif
