/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_digest.h: what a session says in its last line: where the time went, what could not be
 * named, and one sentence for a person. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_DIGEST_H
#define TROCAR_CONSUMER_REPORT_SESSION_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/report/frame_name.h"
#include "consumer/session/session_result.h"
#include "consumer/unwind/store/unwind_end.h"
#include "shared/json/jsonw.h"

#define SUMMARY_TOP	5
#define SUMMARY_MODULES 8
#define SUMMARY_ADVICE	5    /* sentences */
#define SUMMARY_KEYS	4096 /* functions told apart; beyond, the rest counts as "other" */

/* Weight by a pair of names, in order of arrival. */
struct tally {
	struct tally_row {
		const char *name, *detail; /* borrowed; name may be NULL */
		uint64_t hash, weight;
	} * rows;
	size_t count;
	uint64_t total;
};

struct summary {
	struct tally
		functions;    /* self: the innermost user frame, else the innermost kernel frame */
	struct tally modules; /* unnamed frames by module and reason */
	struct tally broken;  /* samples whose chain ended in a module, too early, and why */
	uint64_t samples[QUALITY_COUNT_];
	uint64_t ends[UNWIND_END_COUNT_]; /* samples of stacks that were unwound, by how they ended
					   */
	uint64_t by_pointers;		  /* samples whose stacks were taken by frame pointers */
	uint64_t frames;		  /* of all stacks, each as often as it was sampled */
};

/* 0 or -ENOMEM. */
int session_digest_init(struct summary *s);
void session_digest_done(struct summary *s);

/* Adds a stack; `frames` are its named frames, `n` of them. Only the during phase makes the
 * headline. */
void session_digest_add(struct summary *s, const struct stack *stack,
			const struct named_frame *frames, size_t n);

/* Puts the heaviest first; before what follows. */
void session_digest_sort(struct summary *s);

/*
 * Writes `stack_quality`, and `top`, `modules_unnamed`, `modules_broken` and `advice`, of which as
 * many rows as fit below the writer's wall: so they come last in a line, and never cost it.
 */
void session_digest_write(const struct summary *s, struct jsonw *w);

/* The sentence, at most `space` bytes with NUL. */
void session_digest_headline(const struct summary *s, const struct session_result *session,
			     char *text, size_t space);

#endif
