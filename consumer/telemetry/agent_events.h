/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * agent_events.h: writes the lines agent.start and agent.stop, and the parts that the method
 * `status` shares with them.
 */
#ifndef TROCAR_CONSUMER_TELEMETRY_AGENT_EVENTS_H
#define TROCAR_CONSUMER_TELEMETRY_AGENT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/session/session.h"

struct jsonw;
struct telemetry;

/*
 * The state left by an earlier consumer: the time that no process drained the rings, and its open
 * sessions.
 */
struct agent_gap {
	uint64_t gap_ms; /* 0: no gap */
	uint64_t cut[SESSIONS_MAX];
	size_t n_cut;
	uint64_t lost_lines, lost_bytes, lost_sessions; /* explained at struct control */
};

/* Writes agent.start, and an error line if an earlier consumer ended without agent.stop. */
void agent_events_start(const struct telemetry *t, const struct agent_gap *gap);

/* Writes agent.stop; `reason` NULL: "fatal". */
void agent_events_stop(const struct telemetry *t, const char *reason);

/* Writes "self": {...}. */
void agent_events_write_self(const struct telemetry *t, struct jsonw *w);

/* Writes "totals": {...}. */
void agent_events_write_totals(const struct telemetry *t, struct jsonw *w);

#endif
