/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offcpu_before.h: the phases of the signal `offcpu` before the trigger, from the recorder's looks
 * (consumer/sampling/wait_recorder.h). The wait in which the last of these looks found a thread is
 * open until the session's first look shows whether it went on. Main thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_OFFCPU_BEFORE_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_OFFCPU_BEFORE_H

#include "consumer/sampling/looks.h"
#include "consumer/sampling/wait_recorder.h"
#include "consumer/signals/signals.h"

/* Release with offcpu_before_done; all zeros is released. */
struct offcpu_before {
	struct wait_recorder *recorder;	    /* borrowed; NULL: nothing is open */
	struct signal_stacks *taken;	    /* borrowed: gets stacks and ledger */
	const struct signal_target *target; /* borrowed, for the calls that follow */
	struct processes *processes;	    /* borrowed */
	struct idmap open;		    /* tid -> copy of the open wait, owned */
	uint64_t from_ns, onset_ns, to_ns;  /* where the phases begin, and the last ends */
	uint64_t calm_ns;     /* of the phase before: its end back to its first wait */
	uint64_t last_ns;     /* when the recorder's last pass began; 0: none did */
	uint64_t passes, cut; /* of the recorder, in these phases */
};

/*
 * Takes the waits that were over when the session began, and notes those that were not. `target`
 * has to last until offcpu_before_done.
 */
void offcpu_before_begin(struct offcpu_before *b, const struct signal_host *host,
			 const struct signal_target *target, struct signal_stacks *taken);

/* Takes a thread of the session's first pass. */
void offcpu_before_found(struct offcpu_before *b, const struct look_seen *seen);

/*
 * The first pass has ended: a wait of a thread that a whole pass did not report was over. After a
 * cut pass this is not known: the wait is taken until it was last seen. Releases `b` but for its
 * figures.
 */
void offcpu_before_passed(struct offcpu_before *b, bool cut);

/* Drops open waits. */
void offcpu_before_done(struct offcpu_before *b);

/* Writes `before`: {...}. */
void offcpu_before_write(const struct offcpu_before *b, struct jsonw *w);

#endif
