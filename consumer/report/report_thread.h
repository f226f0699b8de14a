/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_thread.h: the report thread. It takes ended sessions one by one, names their frames, and
 * writes their stack lines and session.end. It also opens the perf maps of processes that may end
 * before their session does (perf_map_files.h). It may wait for space in the output queue, because
 * no other thread waits for it. It does not wake up while it has nothing to do.
 */
#ifndef TROCAR_CONSUMER_REPORT_REPORT_THREAD_H
#define TROCAR_CONSUMER_REPORT_REPORT_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/output/event_line.h"
#include "consumer/session/session_result.h"
#include "consumer/symbols/symbols.h"

struct report_thread;

/*
 * Starts the thread; call before the system-call filter. Everything is borrowed. Returns 0 or
 * -errno. End it with report_thread_stop.
 */
int report_thread_new(const struct event_lines *lines, struct symbols *symbols,
		      struct report_thread **ret_reporter);

/* Passes an ended session to the report thread, which frees it. Never waits. */
void report_thread_put(struct report_thread *r, struct session_result *s);

/*
 * Sets the number of running sessions. When one has begun, perf maps are marked
 * (perf_map_files_mark). While none runs and none is queued, the thread frees the memory of past
 * sessions.
 */
void report_thread_running(struct report_thread *r, size_t count);

/*
 * Makes the thread open and close perf maps and free forgotten modules, between two sessions. Main
 * thread.
 */
void report_thread_wake(struct report_thread *r);

/*
 * Returns the start_ns of the oldest session that was handed over and is not yet written;
 * UINT64_MAX if there is none.
 */
uint64_t report_thread_oldest_ns(struct report_thread *r);

/* Returns the number of sessions handed over and not yet written. */
size_t report_thread_queued(struct report_thread *r);

/* Writes the queued sessions, for at most timeout_ms, then ends the thread and frees everything. */
void report_thread_stop(struct report_thread *r, uint32_t timeout_ms);

#endif
