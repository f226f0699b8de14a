/* SPDX-License-Identifier: BSD-2-Clause */
/* session_stop.h: ends a session before its time on a client's request. Main thread only. */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_STOP_H
#define TROCAR_CONSUMER_SESSION_SESSION_STOP_H

#include "consumer/session/session.h"

/*
 * Makes the running session `id` end with the next drain, in the same way as a session that ends by
 * itself; its last line names the client. Returns 0, also if the session is already ending; -ENOENT
 * if no such session runs.
 */
int session_stop(struct sessions *all, uint64_t id, const struct session_stopped *by);

#endif
