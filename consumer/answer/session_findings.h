/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_findings.h: finds the causes of a session's waits, from the exact times of its threads,
 * its other signals and the kernel's files. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_SESSION_FINDINGS_H
#define TROCAR_CONSUMER_ANSWER_SESSION_FINDINGS_H

#include <stdbool.h>

#include "consumer/answer/findings.h"
#include "consumer/answer/session_digest.h"
#include "consumer/evidence/locks/session_locks.h"
#include "consumer/session/session_result.h"

struct jsonw;

/*
 * Finds the causes. `summary` has all stacks. `releases`, `names`: as in session_locks_put.
 * Returns them sorted, the first one first; NULL without memory,
 * or if the waiting time of the session's threads is unknown (then sets *ret_unknown). Release with
 * free.
 */
struct findings *session_findings_find(const struct session_result *s,
				       const struct session_digest *summary,
				       const struct lock_release *releases,
				       const struct lock_name *names, bool *ret_unknown);

/*
 * Writes `findings`, `waited_ms` and `unexplained`, or `findings_reason` for `found` NULL;
 * `unknown`: as set by session_findings_find.
 */
void session_findings_write(const struct findings *found, bool unknown, struct jsonw *w);

#endif
