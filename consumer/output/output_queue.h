/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output_queue.h: the bounded queue between everyone who makes event lines and the one thread that
 * writes them. Putting never waits. Whole lines are dropped when the queue is full, and counted; a
 * line is never cut or mixed with another.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_OUTPUT_QUEUE_H
#define TROCAR_CONSUMER_OUTPUT_OUTPUT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/output/output_sink.h"

struct output;

struct output_queue_stats {
	uint64_t lines; /* written whole */
	uint64_t bytes;
	uint64_t dropped_lines; /* queue full, or given up at the end */
	uint64_t dropped_bytes;
	uint64_t write_errors; /* write(2) that failed; the line is tried again */
	int last_error;	       /* errno of the last of these, 0 if none since it worked again */
	size_t queued_bytes;
	size_t queue_bytes; /* bound */
};

/*
 * Prepares an output: "-" is stdout, "unix:PATH" a stream socket to connect to, anything else a
 * path (a FIFO if it is one, else a file, made with mode 0640 and appended to). Opened here, before
 * the lock-down; opened again by path in output_queue_reopen. 0 or -errno.
 */
int output_queue_new(const char *where, size_t queue_bytes, struct output **ret_output);

/*
 * Has `tap` called with the lines of every output_queue_put that succeeds, in the caller's thread;
 * to be called before output_queue_start.
 */
typedef void (*output_queue_tap_call)(void *context, const char *data, size_t bytes,
				      uint64_t lines);
void output_queue_tap(struct output *o, output_queue_tap_call tap, void *context);

/* Starts the writing thread; to be called before the system-call filter is installed. 0 or -errno.
 */
int output_queue_start(struct output *o);

/*
 * Queues `bytes` bytes of whole lines, each with its '\n'. Any thread. True when queued, false when
 * dropped (and counted as `lines` lines).
 */
bool output_queue_put(struct output *o, const char *data, size_t bytes, uint64_t lines);

/* Has the thread close and open the path again before the next line (SIGHUP, log rotation). */
void output_queue_reopen(struct output *o);

/* Copies the counters. Any thread. */
void output_queue_stats(struct output *o, struct output_queue_stats *ret_stats);

/* Waits up to timeout_ms for the queue to empty, ends the thread, counts what is left as dropped.
 */
void output_queue_stop(struct output *o, uint32_t timeout_ms);

void output_queue_free(struct output *o);

enum output_queue_kind output_queue_kind(const struct output *o);

/* Directory and file that Landlock must leave writable for output_queue_reopen; NULL for stdout. */
const char *output_queue_path(const struct output *o);

#endif
