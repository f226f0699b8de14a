/* SPDX-License-Identifier: BSD-2-Clause */
/* session_events.h: writes the lines and the answer about running sessions. Main thread only. */
#ifndef TROCAR_CONSUMER_SESSION_SESSION_EVENTS_H
#define TROCAR_CONSUMER_SESSION_SESSION_EVENTS_H

#include "consumer/output/event_line.h"
#include "consumer/session/session.h"

/* Writes session.start with the current state of the session's signals. */
void session_events_start(const struct sessions *all, const struct session *s,
			  const struct event_lines *lines);

/* Writes the array of the method `sessions`: the running ones, then the last ended. */
void session_events_write_list(const struct sessions *all, struct jsonw *w);

#endif
