/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_findings.h: finds the causes of a session's waits, from the exact times of its threads,
 * its other signals and the kernel's files. Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_FINDINGS_H
#define TROCAR_CONSUMER_REPORT_SESSION_FINDINGS_H

#include <stdbool.h>

#include "consumer/evidence/locks/session_locks.h"
#include "consumer/report/session_digest.h"
#include "consumer/session/session_result.h"

struct jsonw;

/*
 * Writes `findings`, `waited_ms` and `unexplained`, or `findings_reason` if the waiting time of the
 * session's threads is unknown. `summary` has all stacks. `releases`, `names`: as in
 * session_locks_put. `complete`: the session's verdict.
 */
void session_findings_write(const struct session_result *s, const struct session_digest *summary,
			    const struct lock_release *releases, const struct lock_name *names,
			    bool complete, struct jsonw *w);

#endif
