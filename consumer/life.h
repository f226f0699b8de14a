/* SPDX-License-Identifier: BSD-2-Clause */
/* life.h: what the agent says of itself: agent.start, agent.stop, and the shared parts of `status`.
 */
#ifndef TROCAR_CONSUMER_LIFE_H
#define TROCAR_CONSUMER_LIFE_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/session.h"
#include "shared/jsonw.h"

struct agent;

/* What an earlier consumer left: for how long nobody drained, and the sessions it had open. */
struct life_gap {
	uint64_t gap_ms; /* 0: there was none */
	uint64_t cut[SESSIONS_MAX];
	size_t n_cut;
};

void life_say_start(struct agent *a, const struct life_gap *gap);
void life_say_stop(struct agent *a);

/* "self": {...} */
void life_write_self(const struct agent *a, struct jsonw *w);

/* "totals": {...} */
void life_write_totals(const struct agent *a, struct jsonw *w);

#endif
