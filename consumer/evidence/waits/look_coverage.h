/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look_coverage.h: the evidence of the signal `offcpu` beside its stacks: how thick its looks came,
 * and what the weights of its stacks were scaled by.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_LOOK_COVERAGE_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_LOOK_COVERAGE_H

#include <stdint.h>

#include "consumer/evidence/waits/wait_scale.h"
#include "consumer/signals/signals.h"

struct look_coverage {
	uint64_t passes;     /* that were made */
	uint64_t skipped;    /* that the budget left out */
	uint64_t left_out;   /* looks at threads that these would have made */
	uint64_t longest_ns; /* between two passes */
	uint64_t session_ns; /* how long the session lasted */
	uint64_t permille;   /* of a CPU: the budget */
	/* Of the phase before: its end back to where the first wait that looks found begins. */
	uint64_t calm_ns;
	/* What the weights were scaled by; set before the report writes. */
	struct wait_scale scale;
	const char *unscaled; /* why they were not: a literal; NULL: they were */
};

/* Returns that of a session's signals; the session owns it. NULL: it has none. */
static inline struct look_coverage *look_coverage_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_OFFCPU);
}

#endif
