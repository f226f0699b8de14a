/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * findings_search.h: what those that look for findings in a session have in common: the session,
 * the times that it has to explain, and the causes found so far. Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_FINDINGS_SEARCH_H
#define TROCAR_CONSUMER_REPORT_FINDINGS_SEARCH_H

#include <stdint.h>

#include "consumer/evidence/locks/session_locks.h"
#include "consumer/evidence/time/thread_pools.h"
#include "consumer/facts/causes.h"
#include "consumer/report/chain_links.h"
#include "consumer/report/findings.h"
#include "consumer/report/session_digest.h"
#include "consumer/session/session_result.h"

/* Pointers are borrowed; `releases` and `names` may be NULL. */
struct findings_search {
	const struct session_result *session;
	const struct session_digest *summary;
	const struct lock_release *releases;
	const struct lock_name *names;
	uint64_t part_ns[ACCOUNT_PARTS_]; /* that count as waiting; 0: they do not */
	/* Of part_ns: waits for locks and other threads, behind those that waited so. */
	uint64_t passed_ns[ACCOUNT_PARTS_];
	struct findings found;
};

double findings_search_seconds(uint64_t ns);

/* Adds a finding that explains `ns` (findings_add); copies `says` and `evidence`. */
void findings_search_add(struct findings_search *s, enum finding_cause cause, uint64_t ns,
			 const char *says, const struct finding_evidence *evidence);

/*
 * The same, of waits of which a chain (NULL: none) has the awaited thread: `says`, of
 * FINDINGS_SAYS_BYTES, gets its links from number `from` on, behind `leads`.
 */
void findings_search_add_chain(struct findings_search *s, enum finding_cause cause, uint64_t ns,
			       char *says, const struct finding_evidence *evidence,
			       const struct chain *c, uint32_t from, const char *leads);

/*
 * Returns the threads' accounts, from any signal that has them; NULL: none. The session owns them.
 */
const struct thread_pools *findings_search_accounts(const struct session_result *s);

/*
 * Gives waits of part `from` to IO, MEMORY and QUEUE, as far as those that were waited for waited
 * so themselves: a cause of these parts explains them too. `of_ns`: this share of the part waited
 * for the `wanted` (chain_links_behind).
 */
void findings_search_pass(struct findings_search *s, enum account_part from, uint64_t of_ns,
			  const struct chains_wanted *wanted);

/* Appends how much of the part was passed on to it: "; 1.2 s of it for ...". */
void findings_search_say_passed(const struct findings_search *s, enum account_part part,
				char says[FINDINGS_SAYS_BYTES]);

/*
 * Writes for how long threads waited so, "for locks", and in which function most of it was, into
 * the FINDINGS_SAYS_BYTES of `says`.
 */
void findings_search_say_place(const struct findings_search *s, enum account_part part,
			       const char *what, char *says);

/*
 * Adds that a limit of the cgroup explains `ns`, where the facts prove it; `more` is appended to
 * their sentence. Returns whether they do.
 */
bool findings_search_limit(struct findings_search *s, enum finding_cause cause, enum cause_id id,
			   const char *source, const char *more, uint64_t ns);

/* Returns the stacks of threads that waited so, where looks found some; else the pools. */
struct finding_evidence findings_search_evidence(const struct findings_search *s,
						 enum account_part part);

#endif
