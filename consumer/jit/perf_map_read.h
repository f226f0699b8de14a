/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map_read.h: opens and reads perf maps (perf_map.h). The file belongs to the watched process:
 * it may be of any size, sparse, and change during the read. Only the end of a large file is read,
 * because it is the newest part. A mark records the length of the file at a time: bytes beyond it
 * are newer.
 */
#ifndef TROCAR_CONSUMER_JIT_PERF_MAP_READ_H
#define TROCAR_CONSUMER_JIT_PERF_MAP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/jit/perf_map.h"
#include "shared/abi/abi.h"
#include "shared/elf/reason.h"

#define PERF_MAP_FOLDER	   "/tmp"
#define PERF_MAP_BYTES_MAX (16u << 20) /* bytes read from the file's end */
#define PERF_MAP_MARKS	   4	       /* of one file */

/*
 * The file had at least `bytes` at `since_ns` (CLOCK_MONOTONIC), with the hash `tail` of its end.
 */
struct perf_map_mark {
	uint64_t bytes, since_ns, tail;
};

/* The known age of a file's lines. */
struct perf_map_age {
	uint64_t began_ns; /* begin of the samples, CLOCK_MONOTONIC */
	struct perf_map_mark marks[PERF_MAP_MARKS];
	size_t mark_count;
};

/*
 * Opens the map of a living process in the host's `folder`: a regular file that the process's user
 * owns, and that was written since the process started. Returns REASON_NONE with a descriptor that
 * the caller closes; REASON_PROCESS_GONE if the process has ended; REASON_NO_PERF_MAP if there is
 * no file, or if the process is in another PID namespace, so that the host's directory is not its
 * own; else the fault of the file.
 */
enum reason perf_map_read_open(const char *folder, const struct process_key *process, int *ret_fd);

/*
 * Checks the descriptor of an opened map of `process` (a regular file, written since the process
 * started), then reads the end of the map. Returns REASON_NONE with *ret_map, which perf_map_free
 * releases, else the reason.
 */
enum reason perf_map_read_load(int fd, const struct process_key *process,
			       const struct perf_map_age *age, struct jit_map **ret_map);

/* Marks the current length of an opened map. Returns false if it is empty or cannot be read. */
bool perf_map_read_mark(int fd, struct perf_map_mark *ret_mark);

#endif
