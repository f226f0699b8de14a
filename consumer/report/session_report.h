/* SPDX-License-Identifier: BSD-2-Clause */
/* session_report.h: the lines of one ended session: its stacks, most weight first, then
 * session.end. */
#ifndef TROCAR_CONSUMER_REPORT_SESSION_REPORT_H
#define TROCAR_CONSUMER_REPORT_SESSION_REPORT_H

#include <stdbool.h>

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"

/*
 * Writes them. It waits for room in the output queue as long as the output moves at all; lines that
 * find none after 2 s without movement, or with *hurry set, are dropped and go into the ledger as
 * queue_full. Symbolizer thread only.
 */
void session_report_write(struct session_result *s, const struct lines *lines,
			  struct symbols *symbols, const bool *hurry);

#endif
