/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output_queue.h: the bounded queue between the modules that make event lines and the one thread
 * that writes them. output_queue_put never waits. It drops and counts whole lines when the queue is
 * full; no line is cut or mixed with another.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_OUTPUT_QUEUE_H
#define TROCAR_CONSUMER_OUTPUT_OUTPUT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/output/output_ring.h"
#include "consumer/output/output_sink.h"

struct output;

struct output_queue_stats {
	uint64_t lines; /* completely written */
	uint64_t bytes;
	uint64_t dropped_lines; /* dropped because the queue was full, or left at the end */
	uint64_t dropped_bytes;
	uint64_t write_errors; /* failed write(2) calls; the line is tried again */
	int last_error;	       /* errno of the last failure; 0 after a successful write */
	uint64_t lost_files;   /* files deleted or replaced while they were written to */
	size_t queued_bytes;
	size_t queue_bytes; /* the limit */
};

/*
 * Prepares an output: "-" is stdout, "unix:PATH" a stream socket to connect to, anything else a
 * path (a FIFO if it is one, else a file, made with mode 0640 and appended to). Opens it at once,
 * before the lock-down; output_queue_reopen opens it again by path. 0 or -errno.
 */
int output_queue_new(const char *where, size_t queue_bytes, struct output **ret_output);

/*
 * Registers `tap`, which every successful output_queue_put calls with its lines, in the caller's
 * thread. Call before output_queue_start.
 */
typedef void (*output_queue_tap_call)(void *context, const char *data, size_t bytes,
				      uint64_t lines);
void output_queue_tap(struct output *o, output_queue_tap_call tap, void *context);

/* Starts the writing thread. Call before the system-call filter is installed. 0 or -errno. */
int output_queue_start(struct output *o);

/*
 * Queues `bytes` bytes of whole lines, each with its '\n'. Any thread. Returns true if they were
 * queued, false if they were dropped (and counted as `lines` lines).
 */
bool output_queue_put(struct output *o, const char *data, size_t bytes, uint64_t lines);

/* Counts lines as dropped that could not be made. Any thread. */
void output_queue_count_dropped(struct output *o, uint64_t lines);

/*
 * Makes the thread close the output and open it by path again before the next line (SIGHUP, log
 * rotation).
 */
void output_queue_reopen(struct output *o);

/*
 * Returns a descriptor that becomes readable when the output has ended for good, because the reader
 * of an unnamed standard output has gone. Nothing is written from then on. Owned by the output.
 */
int output_queue_ended_fd(const struct output *o);

/* Copies the counters. Any thread. */
void output_queue_stats(struct output *o, struct output_queue_stats *ret_stats);

/* Returns the memory of past lines to the kernel if the queue is empty. Any thread. */
void output_queue_give_back(struct output *o);

/*
 * Waits up to timeout_ms until the queue is empty, ends the thread, and counts the remaining lines
 * as dropped. Returns these lines; a second call returns none.
 */
struct output_queue_left output_queue_stop(struct output *o, uint32_t timeout_ms);

void output_queue_free(struct output *o);

enum output_queue_kind output_queue_kind(const struct output *o);

/* Returns its name in messages: the path, or "standard output". */
const char *output_queue_name(const struct output *o);

/*
 * Returns the output's path, which Landlock must leave writable, with its directory, for
 * output_queue_reopen; NULL for stdout.
 */
const char *output_queue_path(const struct output *o);

#endif
