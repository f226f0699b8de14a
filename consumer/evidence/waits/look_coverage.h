/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * look_coverage.h: evidence of the signal `offcpu` other than its stacks: the density of its
 * sampling passes, the scaling of its stack weights, and the search for other ends.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_LOOK_COVERAGE_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_LOOK_COVERAGE_H

#include <stdint.h>

#include "consumer/evidence/waits/held_waits.h"
#include "consumer/evidence/waits/wait_scale.h"
#include "consumer/sampling/other_ends.h"
#include "consumer/signals/signals.h"

struct look_coverage {
	uint64_t passes;     /* completed passes */
	uint64_t skipped;    /* passes skipped to stay within the budget */
	uint64_t left_out;   /* estimated samples that the skipped passes would have taken */
	uint64_t longest_ns; /* between two passes */
	uint64_t session_ns; /* duration of the session */
	uint64_t permille;   /* of a CPU: the budget */
	/*
	 * Length of the phase before the trigger, from the first sampled wait to the phase's end.
	 */
	uint64_t calm_ns;
	uint64_t calm_passes; /* of the recorder, in that phase */
	/* Scaling of the weights; set before the report is written. */
	struct wait_scale scale;
	uint64_t queue_ns[LOOK_NICES]; /* sampled waits for a CPU, by nice value from -20 */
	struct held_waits held;	       /* at the end of the session */
	struct end_search search;      /* for the other ends of waits */
	const char *unscaled; /* why the weights were not scaled: a literal; NULL: they were */
};

/* Returns the look coverage of a session's signals, which the session owns; NULL if it has none. */
static inline struct look_coverage *look_coverage_of(struct signal *const signals[SIGNAL_COUNT_])
{
	return signals_evidence(signals, SIGNAL_OFFCPU);
}

#endif
