/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.h: how far the findings answer why a session's service stalled. The quality of the
 * evidence is something else (session_verdict.h). Pure.
 */
#ifndef TROCAR_CONSUMER_ANSWER_ANSWER_H
#define TROCAR_CONSUMER_ANSWER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/answer/findings.h"
#include "consumer/signals/trigger_reason.h"

struct jsonw;

enum answer_level {
	ANSWER_CERTAIN, /* as the first finding */
	ANSWER_LIKELY,
	ANSWER_NOT_KNOWN, /* a symptom, and the findings explain less than half of the waits */
	ANSWER_NOTHING,	  /* no symptom and no finding, though the waits were seen */
};

struct answer {
	enum answer_level level;
	unsigned int explained_pct; /* findings_explained_pct */
	uint64_t calm_ms;	    /* length of the baseline that was subtracted; 0: none was */
};

/*
 * Returns the answer. `found`: sorted; NULL: the waits are unknown. `calm_ms`: length of the
 * baseline of the waits; 0: none. `seen`: waits were sampled, and the quality of the evidence is
 * not inconclusive; else no finding does not prove that there is nothing to find.
 */
struct answer answer_of(const struct findings *found, const struct trigger_reason *reason,
			uint64_t calm_ms, bool seen);

/* Writes `answer`: {...}. */
void answer_write(const struct answer *a, struct jsonw *w);

#endif
