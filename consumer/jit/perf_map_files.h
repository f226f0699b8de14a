/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map_files.h: keeps perf maps open. The symbolizer needs a process's map when it names a
 * stack, possibly after the process has ended, and a container's /tmp ends with it. So the
 * symbolizer's thread opens the map of a process when its mappings first show compiled code, and
 * keeps it open as long as samples of the process may wait for their names. The main thread reports
 * processes that start and end, and opens nothing; the symbolizer's thread opens and closes. An
 * open file keeps its file system in use: that of an ended container for PERF_MAP_FILES_LINGER_NS.
 */
#ifndef TROCAR_CONSUMER_JIT_PERF_MAP_FILES_H
#define TROCAR_CONSUMER_JIT_PERF_MAP_FILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "consumer/jit/perf_map_read.h"
#include "shared/abi/abi.h"
#include "shared/elf/reason.h"

/* Processes at once; the maps of other processes are opened when their names are needed. */
#define PERF_MAP_FILES_MAX 512

#define PERF_MAP_FILES_TRIES	8 /* a process may write its map some time after its first code */
#define PERF_MAP_FILES_AGAIN_NS 250000000ULL
#define PERF_MAP_FILES_LINGER_NS \
	45000000000ULL /* after the process's end: longer than PROCESS_LINGER_MS */

/*
 * Opens the perf map of a process that the consumer cannot open itself. Returns 0 with a descriptor
 * that the caller closes, or -errno. Called on the symbolizer's thread.
 */
typedef int (*perf_map_files_borrow)(void *context, const struct process_key *process, int *ret_fd);

/*
 * Notifies the symbolizer's thread that perf_map_files_serve has work. Called on the main thread.
 */
typedef void (*perf_map_files_wake)(void *context);

struct perf_map_file {
	struct process_key process;
	uint64_t tried_ns;  /* last attempt, CLOCK_MONOTONIC */
	uint64_t gone_ns;   /* when the process ended, CLOCK_MONOTONIC; 0: it lives */
	enum reason reason; /* result of the last attempt; NONE: fd is open */
	uint8_t state, tries, mark_count;
	int fd;					    /* owned; -1: none */
	struct perf_map_mark marks[PERF_MAP_MARKS]; /* the newest first */
};

struct perf_map_files {
	pthread_mutex_t lock;
	const char *folder; /* directory of the host's maps; borrowed */
	perf_map_files_borrow borrow;
	void *borrow_context;
	perf_map_files_wake wake;
	void *wake_context;
	bool mark_wanted;
	struct perf_map_file items[PERF_MAP_FILES_MAX];
};

/*
 * Initialises without files. `folder` is the host's directory (borrowed); the two callbacks are not
 * set.
 */
void perf_map_files_init(struct perf_map_files *f, const char *folder);
void perf_map_files_done(struct perf_map_files *f);

/*
 * Set a callback; call before the symbolizer's thread starts and before the first process. NULL: no
 * borrowing.
 */
void perf_map_files_set_borrow(struct perf_map_files *f, perf_map_files_borrow borrow,
			       void *context);
void perf_map_files_set_wake(struct perf_map_files *f, perf_map_files_wake wake, void *context);

/*
 * Reports on the main thread, after each reading of its mappings, that `process` has compiled code
 * mapped. If an attempt finds no map, a later call makes the next attempt, PERF_MAP_FILES_TRIES in
 * all.
 */
void perf_map_files_meet(struct perf_map_files *f, const struct process_key *process);

/* Reports on the main thread that the process has ended. */
void perf_map_files_leave(struct perf_map_files *f, const struct process_key *process);

/*
 * Reports on the main thread that a session begins: the symbolizer's thread marks the length of
 * each open map.
 */
void perf_map_files_mark(struct perf_map_files *f);

/*
 * Opens the files that the main thread has requested, marks each, and closes those that no session
 * can need any more. With `idle` (no session waits for names) it also closes the maps of processes
 * that ended PERF_MAP_FILES_LINGER_NS ago. Symbolizer's thread.
 */
void perf_map_files_serve(struct perf_map_files *f, bool idle);

/*
 * Returns the time at which perf_map_files_serve has something to close, CLOCK_MONOTONIC; 0: no
 * file of an ended process is kept.
 */
uint64_t perf_map_files_due_ns(struct perf_map_files *f);

/* Returns whether the process was reported and is not forgotten yet. Any thread. */
bool perf_map_files_knows(struct perf_map_files *f, const struct process_key *process);

/*
 * Copies the marks of the process's file, the newest first; returns their number. Symbolizer's
 * thread.
 */
size_t perf_map_files_marks(struct perf_map_files *f, const struct process_key *process,
			    struct perf_map_mark marks[PERF_MAP_MARKS]);

/*
 * Opens the map of a process as it is now, or else returns the one that is kept open. Symbolizer's
 * thread. Returns REASON_NONE with a descriptor in *ret_fd, else the reason; REASON_PROCESS_GONE:
 * the process had ended before the first request. A newly opened descriptor is also in *ret_owned,
 * and the caller closes it; a kept one is valid until the next perf_map_files_serve.
 */
enum reason perf_map_files_open(struct perf_map_files *f, const struct process_key *process,
				int *ret_fd, int *ret_owned);

#endif
