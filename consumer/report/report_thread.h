/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_thread.h: the symbolizer's thread. It takes ended sessions one by one, names their frames,
 * and writes their stack lines and session.end; and it opens the perf maps of processes that may
 * have gone by then (perf_map_files.h). It may wait for room in the output queue: nobody waits for
 * it. Idle it does not wake.
 */
#ifndef TROCAR_CONSUMER_REPORT_REPORT_THREAD_H
#define TROCAR_CONSUMER_REPORT_REPORT_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"
#include "consumer/symbols/symbols.h"

struct report_thread;

/* Starts the thread (before the system-call filter). Everything is borrowed. 0 or -errno. */
int report_thread_new(const struct lines *lines, struct symbols *symbols,
		      struct report_thread **ret_reporter);

/* Hands an ended session over, which the reporter frees. Never waits. */
void report_thread_put(struct report_thread *r, struct session_result *s);

/* Sessions handed over and not yet written. */
size_t report_thread_queued(struct report_thread *r);

/* Writes what is queued, waiting at most timeout_ms, then ends the thread and frees everything. */
void report_thread_stop(struct report_thread *r, uint32_t timeout_ms);

#endif
