/* SPDX-License-Identifier: BSD-2-Clause */
/* session_pools.h: writes what the session's threads waited for. Report thread only. */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_POOLS_H
#define TROCAR_CONSUMER_REPORT_SESSION_POOLS_H

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/* Writes one line for each pool; nothing where the session has no accounts. */
void session_pools_put(const struct session_result *s, const struct lines *lines,
		       const struct event_subject *subject);

#endif
