/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_verdict.h: writes the ledger of each signal, and the session's verdict from all ledgers.
 * Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_VERDICT_H
#define TROCAR_CONSUMER_REPORT_SESSION_VERDICT_H

#include "consumer/report/session_digest.h"
#include "consumer/session/session_result.h"

struct jsonw;

/*
 * Returns the known stall time of the session's tasks, from the begin of the onset to the end; 0
 * without pressure.
 */
uint64_t session_verdict_stalled_ms(const struct session_result *s);

/*
 * Writes `ledger`, `quality`, `verdict` (the same, for older readers), its reason, `stalled_ms`,
 * `explained`, the signals' own keys and `lost_share` of session.end. `summary` has all stacks.
 */
void session_verdict_write(const struct session_result *s, const struct session_digest *summary,
			   struct jsonw *w);

#endif
