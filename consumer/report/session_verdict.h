/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_verdict.h: writes the ledger of each signal and the verdict of the session that follows
 * from all of them. Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_VERDICT_H
#define TROCAR_CONSUMER_REPORT_SESSION_VERDICT_H

#include "consumer/report/session_digest.h"
#include "consumer/session/session_result.h"

struct jsonw;

/*
 * Returns for how long the session's tasks are known to have stalled, from the begin of the onset
 * to the end; 0 without pressure.
 */
uint64_t session_verdict_stalled_ms(const struct session_result *s);

/*
 * Writes `ledger`, `verdict`, its reason, `stalled_ms`, `explained`, the signals' own keys and
 * `lost_share` of session.end. All stacks are in `summary`. Returns whether it is complete.
 */
bool session_verdict_write(const struct session_result *s, const struct session_digest *summary,
			   struct jsonw *w);

#endif
