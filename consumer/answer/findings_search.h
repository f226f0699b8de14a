/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * findings_search.h: shared state of the code that searches for findings in a session: the session,
 * the times to explain, and the causes found so far. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_FINDINGS_SEARCH_H
#define TROCAR_CONSUMER_ANSWER_FINDINGS_SEARCH_H

#include <stdint.h>

#include "consumer/answer/chain_links.h"
#include "consumer/answer/findings.h"
#include "consumer/answer/session_digest.h"
#include "consumer/evidence/locks/session_locks.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/facts/causes.h"
#include "consumer/session/session_result.h"

/* Pointers are borrowed; `releases` and `names` may be NULL. */
struct findings_search {
	const struct session_result *session;
	const struct session_digest *summary;
	const struct lock_release *releases;
	const struct lock_name *names;
	uint64_t part_ns[ACCOUNT_PARTS_]; /* time that counts as waiting; 0: not waiting */
	/* Part of part_ns: waits for locks and other threads that waited in this way themselves. */
	uint64_t passed_ns[ACCOUNT_PARTS_];
	struct findings found;
};

double findings_search_seconds(uint64_t ns);

/* Adds a finding that explains `ns` (findings_add); copies `says` and `evidence`. */
void findings_search_add(struct findings_search *s, enum finding_cause cause, uint64_t ns,
			 const char *says, const struct finding_evidence *evidence);

/* As findings_search_add; `chain`: number of the `chain` line with details, 0: none. */
void findings_search_add_numbered(struct findings_search *s, enum finding_cause cause, uint64_t ns,
				  const char *says, const struct finding_evidence *evidence,
				  uint32_t chain);

/*
 * Sets the level of the finding of this cause, if there is one, and the reason, a literal: for a
 * finding whose evidence is better, or worse, than its row in findings.def assumes.
 */
void findings_search_level(struct findings_search *s, enum finding_cause cause,
			   enum findings_level level, const char *proof);

/*
 * Returns the threads' accounts, from any signal that has them; NULL if none has. The session owns
 * them.
 */
const struct thread_pools *findings_search_accounts(const struct session_result *s);

/*
 * Moves time of part `from` to IO, MEMORY and QUEUE, as far as the awaited threads waited in these
 * parts themselves: a cause of these parts then explains it too. The share is that of the `wanted`
 * locks (chain_links_behind), applied to `of_ns`.
 */
void findings_search_pass(struct findings_search *s, enum account_part from, uint64_t of_ns,
			  const struct chains_wanted *wanted);

/* Appends the time that was moved to the part: "; 1.2 s of it for ...". */
void findings_search_say_passed(const struct findings_search *s, enum account_part part,
				char says[FINDINGS_SAYS_BYTES]);

/*
 * Writes into `says` (FINDINGS_SAYS_BYTES) the time that threads waited in a part, with `what` as
 * in "for locks", and the function with most of it.
 */
void findings_search_say_place(const struct findings_search *s, enum account_part part,
			       const char *what, char *says);

/*
 * Adds that a limit of the cgroup explains `ns`, if the facts prove it; `more` is appended to their
 * sentence. Returns whether they prove it.
 */
bool findings_search_limit(struct findings_search *s, enum finding_cause cause, enum cause_id id,
			   const char *source, const char *more, uint64_t ns);

/*
 * Returns as evidence the stacks of threads that waited in this part, if samples found some; else
 * the pools.
 */
struct finding_evidence findings_search_evidence(const struct findings_search *s,
						 enum account_part part);

#endif
