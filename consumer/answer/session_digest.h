/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_digest.h: summarizes a session for session.end: the use of its time, and the frames
 * without a name. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_SESSION_DIGEST_H
#define TROCAR_CONSUMER_ANSWER_SESSION_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/answer/chains.h"
#include "consumer/evidence/cpu/function_growth.h"
#include "consumer/evidence/cpu/garbage.h"
#include "consumer/evidence/cpu/session_cpu.h"
#include "consumer/evidence/locks/condition_locks.h"
#include "consumer/evidence/waits/pool_places.h"
#include "consumer/evidence/waits/session_waits.h"
#include "consumer/naming/frame_name.h"
#include "consumer/session/session_result.h"
#include "consumer/unwind/store/unwind_end.h"
#include "shared/tools/idmap.h"

struct jsonw;

#define SUMMARY_TOP	5
#define SUMMARY_MODULES 8
#define SUMMARY_ADVICE	5    /* sentences */
#define SUMMARY_FEW	30   /* below this number of samples, shares are rough */
#define SUMMARY_KEYS	4096 /* distinct functions; the others count as "other" */

#define SUMMARY_PROCESSES 65536 /* known processes with a table; others count as without */

/* Weights by pair of names, in order of arrival. */
struct tally {
	struct tally_row {
		const char *name, *detail; /* borrowed; name may be NULL */
		const char *rowless; /* of a module in which stacks ended: as named_frame.rowless */
		uint64_t hash, weight;
	} * rows;
	size_t count;
	uint64_t total;
};

struct session_digest {
	struct tally
		functions;    /* self: the innermost user frame, else the innermost kernel frame */
	struct tally modules; /* unnamed frames, by module and reason */
	struct tally broken;  /* samples with a chain that ended early, by module and reason */
	uint64_t samples[SIGNAL_COUNT_][QUALITY_COUNT_]; /* by the signal that took the stack */
	uint64_t stood_ns[SIGNAL_COUNT_];		 /* time that these samples represent */
	/* Samples with frames of a language runtime, by the end of that walk, and these frames. */
	uint64_t runtime_ends[RUNTIME_ENDS_], runtime_frames, runtime_unnamed;
	/* Samples of unwound stacks, by their end. */
	uint64_t ends[UNWIND_END_COUNT_];
	uint64_t by_pointers; /* samples with stacks that were taken by frame pointers */
	uint64_t followed;    /* samples walked by a table with at least one frame-pointer step */
	uint64_t frames;      /* of all stacks, counted once per sample */
	struct idmap walked;  /* processes with at least one stack walked by a table */
	struct function_growth growth;
	struct session_waits waits;
	struct chains chains; /* all 0 until session_chains_put */
	struct session_cpu cpu;
	struct garbage garbage;
	struct pool_places pools;
	struct condition_locks conditions;
	/* For all stacks of CPU time, by phase: samples, and the time that they represent. */
	uint64_t count[PHASE_COUNT_], weight_ns[PHASE_COUNT_];
};

/* Returns 0 or -ENOMEM. Release with session_digest_done. */
int session_digest_init(struct session_digest *s);
void session_digest_done(struct session_digest *s);

/*
 * Records whether a table walked the stack. Call for all stacks before session_digest_add: the
 * first samples of a process precede its table, and prove nothing about the build of its files.
 */
void session_digest_meet(struct session_digest *s, const struct stack *stack);

/*
 * Adds a stack of CPU time taken by `signal`; `frames` are its `n` named frames. `top` uses the
 * phase `during` only; the headline compares it with the phase `before`.
 */
void session_digest_add(struct session_digest *s, enum signal_bit signal, const struct stack *stack,
			const struct named_frame *frames, size_t n);

/*
 * Adds a stack that `signal` took of a thread that waits, or that ended a wait for a lock. It
 * counts in the quality, in the names and in the advice.
 */
void session_digest_add_other(struct session_digest *s, enum signal_bit signal,
			      const struct stack *stack, const struct named_frame *frames,
			      size_t n);

/* Returns the number of samples in the signal's stacks. */
uint64_t session_digest_samples(const struct session_digest *s, enum signal_bit signal);

/*
 * Sorts the rows, the heaviest first. Call before session_digest_write and the headline.
 */
void session_digest_sort(struct session_digest *s);

/*
 * Writes `stack_quality`, `few_samples`, `top`, `modules_unnamed`, `modules_broken` and `advice`,
 * with as many rows as fit below the writer's limit. Write them last in a line, so that they never
 * make it too long.
 */
void session_digest_write(const struct session_digest *s, struct jsonw *w);

/*
 * Returns the heaviest function with a name; if none has one, the heaviest row; NULL if nothing
 * ran. Call after session_digest_sort.
 */
const struct tally_row *session_digest_top(const struct session_digest *s);

/* Returns whether the shares of the phase `during` are from few samples (SUMMARY_FEW). */
bool session_digest_is_few(const struct session_digest *s);

#endif
