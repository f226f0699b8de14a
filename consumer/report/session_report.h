/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_report.h: writes the lines of one ended session: its stacks, heaviest first, then
 * session.end.
 */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_REPORT_H
#define TROCAR_CONSUMER_REPORT_SESSION_REPORT_H

#include <stdbool.h>

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes the lines. Waits for space in the output queue as long as the output makes progress. After
 * 2 s (STALL_NS) without a write, or with *hurry set, drops lines that do not fit and counts their
 * samples in the ledger as queue_full. Report thread only.
 */
void session_report_write(struct session_result *s, const struct event_lines *lines,
			  struct symbols *symbols, const bool *hurry);

#endif
