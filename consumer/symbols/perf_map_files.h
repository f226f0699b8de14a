/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map_files.h: perf maps as open files. A process is asked for its map when its names are
 * wanted; that is too late when it has gone, and in a container its /tmp with it. So the map of a
 * process that has compiled code mapped is opened when that is first seen, and stays open as long
 * as samples of the process may wait for their names. The main thread says who comes and goes and
 * never opens anything; the symbolizer's thread opens and closes. An open file keeps its file
 * system in use: for a container that has ended, JIT_FILES_LINGER_NS.
 */
#ifndef TROCAR_CONSUMER_JIT_FILES_H
#define TROCAR_CONSUMER_JIT_FILES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/elf/reason.h"

#define JIT_FILES_MAX \
	512 /* processes at once; the maps of further ones are opened when asked for */
#define JIT_FILES_TRIES	    8 /* a process may write its map some time after its first code */
#define JIT_FILES_AGAIN_NS  250000000ULL
#define JIT_FILES_LINGER_NS 45000000000ULL /* after its end: longer than PROCESS_LINGER_MS */

/*
 * Opens the perf map of a process where this process cannot reach it; 0 with a descriptor that is
 * the caller's, or -errno. Called from the symbolizer's thread.
 */
typedef int (*perf_map_files_borrow)(void *context, const struct process_key *process, int *ret_fd);

/* Tells the symbolizer's thread that there is work for perf_map_files_serve; from the main thread.
 */
typedef void (*perf_map_files_wake)(void *context);

struct jit_file {
	struct process_key process;
	uint64_t tried_ns;  /* CLOCK_MONOTONIC */
	uint64_t gone_ns;   /* the same; 0 while it lives */
	enum reason reason; /* of the last attempt; NONE: fd is there */
	uint8_t state, tries;
	int fd; /* owned; -1: none */
};

struct jit_files {
	pthread_mutex_t lock;
	const char *folder; /* where the host's maps are; borrowed */
	perf_map_files_borrow borrow;
	void *borrow_context;
	perf_map_files_wake wake;
	void *wake_context;
	struct jit_file items[JIT_FILES_MAX];
};

/* Empty, over the host's `folder` (borrowed), without the two callbacks. */
void perf_map_files_init(struct jit_files *f, const char *folder);
void perf_map_files_done(struct jit_files *f);

/* Set before the symbolizer's thread and the first process. NULL: not at all. */
void perf_map_files_set_borrow(struct jit_files *f, perf_map_files_borrow borrow, void *context);
void perf_map_files_set_wake(struct jit_files *f, perf_map_files_wake wake, void *context);

/*
 * `process` has compiled code mapped; main thread, as often as its mappings were read. An attempt
 * that found no map is made again, JIT_FILES_TRIES times in all.
 */
void perf_map_files_meet(struct jit_files *f, const struct process_key *process);

/* The process has gone; main thread. */
void perf_map_files_leave(struct jit_files *f, const struct process_key *process);

/*
 * Opens what the main thread has asked for, and closes what nobody can ask for any more: with
 * `idle`, when no session waits for its names, also the maps of those that went long ago.
 * Symbolizer's thread.
 */
void perf_map_files_serve(struct jit_files *f, bool idle);

/* When perf_map_files_serve has something to close, CLOCK_MONOTONIC; 0: nothing is held of a
 * process that has gone. */
uint64_t perf_map_files_due_ns(struct jit_files *f);

/* Whether the process was met, and is not forgotten yet; any thread. */
bool perf_map_files_knows(struct jit_files *f, const struct process_key *process);

/*
 * The map of a process: as it is now, else as it was held. Symbolizer's thread. REASON_NONE with a
 * descriptor in *ret_fd, else the reason; REASON_PROCESS_GONE: nobody asked in time. One that was
 * opened now is in *ret_owned too, and the caller's; one that was held is good until the next
 * perf_map_files_serve.
 */
enum reason perf_map_files_open(struct jit_files *f, const struct process_key *process, int *ret_fd,
				int *ret_owned);

#endif
