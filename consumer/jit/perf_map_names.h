/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_map_names.h: names addresses by the perf maps of the processes of one session; each map is
 * read when it is first needed. Symbolizer thread only.
 */
#ifndef TROCAR_CONSUMER_JIT_PERF_MAP_NAMES_H
#define TROCAR_CONSUMER_JIT_PERF_MAP_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/jit/perf_map_files.h"
#include "shared/abi/abi.h"
#include "shared/elf/reason.h"

#define JIT_PROCESSES_MAX 512 /* limit of one session */

struct jit {
	struct jit_process *processes; /* owned */
	size_t count;
	size_t bytes;	   /* of all maps */
	uint64_t began_ns; /* begin of the session's samples, CLOCK_MONOTONIC */
};

/* Sets the begin of the samples to be named. Call before the first of them is named. */
void perf_map_names_begin(struct jit *j, uint64_t began_ns);

/* Frees all maps; accepts a zeroed struct. */
void perf_map_names_done(struct jit *j);

/*
 * Names the function at `address` of `process`, by its map from `files`; the string lives until
 * perf_map_names_done. Keeps as many maps as fit into max_bytes, plus one more. Returns REASON_NONE
 * with *ret_fn and *ret_start, else the reason.
 */
enum reason perf_map_names_find(struct jit *j, struct perf_map_files *files,
				const struct process_key *process, uint64_t address,
				size_t max_bytes, const char **ret_fn, uint64_t *ret_start);

#endif
