/* SPDX-License-Identifier: BSD-2-Clause */
/* report.h: the lines of one ended session: its stacks, most weight first, then session.end. */
#ifndef TROCAR_CONSUMER_REPORT_H
#define TROCAR_CONSUMER_REPORT_H

#include <stdbool.h>

#include "consumer/line.h"
#include "consumer/session_result.h"

/*
 * Writes them. It waits for room in the output queue as long as the output moves at all; lines that
 * find none after 2 s without movement, or with *hurry set, are dropped and go into the ledger as
 * queue_full. Symbolizer thread only.
 */
void report_session(struct session_result *s, const struct lines *lines, struct symbols *symbols,
		    const bool *hurry);

#endif
