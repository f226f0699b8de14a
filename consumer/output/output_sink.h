/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output_sink.h: the descriptor that event lines are written to, of any kind. A write never blocks
 * for long: a descriptor that cannot be made non-blocking is polled first. Used by the writing
 * thread of output_queue.c only.
 */
#ifndef TROCAR_CONSUMER_OUTPUT_OUTPUT_SINK_H
#define TROCAR_CONSUMER_OUTPUT_OUTPUT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum output_queue_kind {
	OUTPUT_STDOUT,
	OUTPUT_FILE,
	OUTPUT_FIFO,
	OUTPUT_UNIX,
};

struct output_sink {
	enum output_queue_kind kind;
	char *path;	 /* owned; NULL for stdout */
	int fd;		 /* -1 while closed */
	bool borrowed;	 /* fd is the stdout that the process inherited */
	bool socket;	 /* accepts MSG_DONTWAIT */
	bool poll_first; /* a terminal, or a pipe that could not be opened again */
	bool final; /* stdout is a pipe or socket without a name: its reader's end is its own */
	bool torn;  /* a file that ends inside a line: a line end goes first */
	uint64_t looked_ns,
		other_ns; /* last output_sink_is_lost; another file is at the path since, 0: none */
};

/* Opens `where` (as in output_queue_new). On failure there is nothing to release. 0 or -errno. */
int output_sink_open(const char *where, struct output_sink *ret_sink);

/* Opens the path again and closes the old descriptor; on failure keeps the old one. 0 or -errno. */
int output_sink_reopen(struct output_sink *sink);

void output_sink_close(struct output_sink *sink);
void output_sink_done(struct output_sink *sink);

/*
 * Writes at most the `count` pieces. Returns the bytes written; -EAGAIN if there is no space now
 * (wait for POLLOUT); else -errno. SIGPIPE must be blocked or ignored.
 */
ssize_t output_sink_write(struct output_sink *sink, const struct iovec *iov, int count);

/*
 * Returns whether the open file has lost its name: it was deleted, or another file has been at its
 * path for some seconds (a log rotation without a signal). False for a sink that is no file. Checks
 * at most once a second, at `now_ns` (clock_mono_ns).
 */
bool output_sink_is_lost(struct output_sink *sink, uint64_t now_ns);

#endif
