/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offcpu_before.h: the phases of the signal `offcpu` before the trigger, from the recorder's
 * samples (consumer/sampling/wait_recorder.h). The wait in a thread's last recorded sample stays
 * open until the session's first pass shows whether it continued. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_OFFCPU_BEFORE_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_OFFCPU_BEFORE_H

#include "consumer/sampling/looks.h"
#include "consumer/sampling/wait_recorder.h"
#include "consumer/signals/signals.h"

/* Release with offcpu_before_done; all zeros needs no release. */
struct offcpu_before {
	struct wait_recorder *recorder;	    /* borrowed; NULL: no open waits */
	struct signal_stacks *taken;	    /* borrowed; receives stacks and ledger */
	const struct signal_target *target; /* borrowed for the following calls */
	struct processes *processes;	    /* borrowed */
	struct idmap open;		    /* tid -> copy of the open wait, owned */
	uint64_t from_ns, onset_ns, to_ns;  /* begin of either phase, and end of the last */
	uint64_t calm_ns;     /* length of the phase before, from its first wait to its end */
	uint64_t last_ns;     /* begin of the recorder's last pass; 0: no pass */
	uint64_t passes, cut; /* of the recorder, in these phases */
	uint64_t calm_passes; /* part of passes: in the phase before */
};

/*
 * Takes the waits that were over when the session began, and records the open ones. `target` must
 * live until offcpu_before_done.
 */
void offcpu_before_begin(struct offcpu_before *b, const struct signal_host *host,
			 const struct signal_target *target, struct signal_stacks *taken);

/* Takes a thread found by the session's first pass. */
void offcpu_before_found(struct offcpu_before *b, const struct look_seen *seen);

/*
 * Ends the first pass. If the pass was complete, the wait of a thread that it did not find was
 * over. If it was cut, this is unknown, and the wait counts until it was last seen. Releases `b`
 * except for its counts and times.
 */
void offcpu_before_passed(struct offcpu_before *b, bool cut);

/* Drops the open waits. */
void offcpu_before_done(struct offcpu_before *b);

/* Writes `before`: {...}. */
void offcpu_before_write(const struct offcpu_before *b, struct jsonw *w);

#endif
