/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reporter.h: the symbolizer's thread. It takes ended sessions one by one, names their frames, and
 * writes their stack lines and session.end; and it opens the perf maps of processes that may have
 * gone by then (jit_files.h). It may wait for room in the output queue: nobody waits
 * for it. Idle it does not wake.
 */
#ifndef TROCAR_CONSUMER_REPORTER_H
#define TROCAR_CONSUMER_REPORTER_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/line.h"
#include "consumer/session_result.h"
#include "consumer/symbols/symbols.h"

struct reporter;

/* Starts the thread (before the system-call filter). Everything is borrowed. 0 or -errno. */
int reporter_new(const struct lines *lines, struct symbols *symbols,
		 struct reporter **ret_reporter);

/* Hands an ended session over, which the reporter frees. Never waits. */
void reporter_put(struct reporter *r, struct session_result *s);

/* Sessions handed over and not yet written. */
size_t reporter_queued(struct reporter *r);

/* Writes what is queued, waiting at most timeout_ms, then ends the thread and frees everything. */
void reporter_stop(struct reporter *r, uint32_t timeout_ms);

#endif
