/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_verdict.h: writes the ledger of each signal, and the session's verdict from all ledgers.
 * Report thread only.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_VERDICT_H
#define TROCAR_CONSUMER_REPORT_SESSION_VERDICT_H

#include "consumer/answer/session_digest.h"
#include "consumer/session/session_result.h"
#include "consumer/signals/ledger.h"

struct jsonw;

/*
 * Writes `ledger`, `quality`, `verdict` (the same, for older readers), its reason, `stalled_ms`,
 * `explained`, the signals' own keys and `lost_share` of session.end. `summary` has all stacks.
 * Returns the verdict.
 */
enum verdict session_verdict_write(const struct session_result *s,
				   const struct session_digest *summary, struct jsonw *w);

#endif
